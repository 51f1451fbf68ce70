# cmake --install build --prefix DIR    <DIR>/bin, <DIR>/share/foretrain/data, <DIR>/share/doc/foretrain
# cpack --config build/CPackConfig.cmake    the same as .deb and .tgz
#
# A prefix may be moved: a program finds its data beside itself (core/io/data_dir.h fixes these two folders).
install(DIRECTORY data/ DESTINATION share/foretrain/data)
install(FILES LICENSE NOTICE README.md DESTINATION share/doc/foretrain)

# Installing copies what is built, and builds nothing: the tests need not be built for it.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_ARCHIVE_FILE_EXTENSION tgz)
set(CPACK_PACKAGE_NAME foretrain)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION_FILE "${CMAKE_SOURCE_DIR}/cmake/description.txt")
set(CPACK_PACKAGE_CONTACT "The Foretrain authors <foretrain@example.org>")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)

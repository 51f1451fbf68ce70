if(FORETRAIN_SANITIZE)
  add_compile_options(-fsanitize=${FORETRAIN_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FORETRAIN_SANITIZE})
endif()

if(FORETRAIN_SANITIZE)
  add_compile_options(-fsanitize=${FORETRAIN_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FORETRAIN_SANITIZE})
endif()

# libFuzzer steers by the branches that an input takes through our code.
if(FORETRAIN_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Read by ctest: labels of the tests that gtest_discover_tests found, by name.
#   slow     more than about 20 s; left out under sanitizers
#   threads  what the thread sanitizer runs: whatever starts threads
foreach(test IN LISTS planner_tests)
  if(test MATCHES "^planner\\.(Search|Calibrate\\.GivesTheSameBytes)")
    set_tests_properties("${test}" PROPERTIES LABELS threads)
  endif()
endforeach()
foreach(test IN LISTS programs_tests)
  if(test MATCHES "^programs\\.Baseline\\.FailsWhenASensitiveFigureIsSpoiled")
    set_tests_properties("${test}" PROPERTIES LABELS slow)
  endif()
endforeach()

# Enables C for the folder that includes this: the library is C++ alone, its C interface is tried from C. A clang++ takes
# its own clang, whose sanitizers and flags the library has too.
if(NOT CMAKE_C_COMPILER AND CMAKE_CXX_COMPILER MATCHES "/clang[+][+][^/]*$")
  string(REGEX REPLACE "/clang[+][+]([^/]*)$" "/clang\\1" candidate "${CMAKE_CXX_COMPILER}")
  if(EXISTS "${candidate}")
    set(CMAKE_C_COMPILER "${candidate}")
  endif()
endif()
enable_language(C)

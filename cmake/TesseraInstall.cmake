# Install rules: library, headers, CMake package (find_package(Tessera)) and pkg-config file.
include(CMakePackageConfigHelpers)

install(
  TARGETS tessera
  EXPORT TesseraTargets
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY core/include/tessera DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING
        PATTERN "*.hpp" PATTERN "*.h")

if(TARGET tessera_command)
  install(TARGETS tessera_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# Kokkos in a cache folder would be found by nobody else, and only as long as the cache lives: its libraries come along.
if(TESSERA_BUNDLE_KOKKOS AND BUILD_SHARED_LIBS)
  file(GLOB libraries "${Kokkos_DIR}/../../libkokkos*.so*")
  install(FILES ${libraries} DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Tessera")
install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION "${package_folder}")
configure_package_config_file(cmake/TesseraConfig.cmake.in "${PROJECT_BINARY_DIR}/TesseraConfig.cmake"
                              INSTALL_DESTINATION "${package_folder}")
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake" COMPATIBILITY ${compatibility})
install(FILES "${PROJECT_BINARY_DIR}/TesseraConfig.cmake" "${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake"
        DESTINATION "${package_folder}")

# pkg-config. A shared libtessera finds what it needs by itself; a static one leaves that to the program, and the file
# says where it was at build time.
set(TESSERA_PC_LIBS_STATIC "")
if(NOT BUILD_SHARED_LIBS)
  if(BACKEND STREQUAL "kokkos" AND TESSERA_KOKKOS)
    if(Kokkos_DIR)
      get_filename_component(folder "${Kokkos_DIR}/../.." ABSOLUTE)
      string(APPEND TESSERA_PC_LIBS_STATIC " -L${folder} -Wl,-rpath,${folder}")
    endif()
    string(APPEND TESSERA_PC_LIBS_STATIC " -lkokkoscore -ldl")
    if(NOT Kokkos_DIR OR Kokkos_DEVICES MATCHES "OPENMP")
      string(APPEND TESSERA_PC_LIBS_STATIC " -fopenmp")
    endif()
  elseif(BACKEND STREQUAL "cuda")
    string(APPEND TESSERA_PC_LIBS_STATIC " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lpthread -lrt -ldl")
  elseif(BACKEND STREQUAL "hip")
    string(APPEND TESSERA_PC_LIBS_STATIC " -ldl")
  endif()
  string(APPEND TESSERA_PC_LIBS_STATIC " -lstdc++ -lm")
endif()
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(TESSERA_PC_${folder} "${CMAKE_INSTALL_${folder}}")
  else()
    set(TESSERA_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
# The prefix follows the file, so that the installed tree can be moved.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(TESSERA_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" TESSERA_PC_PREFIX "\${pcfiledir}/${up}")
endif()
configure_file(cmake/tessera.pc.in "${PROJECT_BINARY_DIR}/tessera.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tessera.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# tessera_adapter: loads implementations behind <tessera/adapter.h>. Needs no other part of bench/.
include_guard(GLOBAL)
add_library(tessera_adapter STATIC "${CMAKE_CURRENT_LIST_DIR}/adapter.cpp")
target_link_libraries(
  tessera_adapter
  PUBLIC Tessera::tessera tessera_private
  PRIVATE ${CMAKE_DL_LIBS} tessera_warnings)

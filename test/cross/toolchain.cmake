# SPDX-License-Identifier: MIT
# Another machine, under qemu: -DCROSS=aarch64 or riscv64, with the libraries that test/cross/libraries has made.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CROSS})
set(CMAKE_C_COMPILER ${CROSS}-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-${CROSS};-L;/usr/${CROSS}-linux-gnu")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CROSS)
set(LIBRARIES_OF_TARGET ${CMAKE_CURRENT_LIST_DIR}/../../build/libraries-${CROSS})
set(CMAKE_FIND_ROOT_PATH ${LIBRARIES_OF_TARGET} /usr/${CROSS}-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${LIBRARIES_OF_TARGET}/lib/pkgconfig)

# Compiles kernel/nvptx.inc to PTX and writes it to OUT as bytes for an array; nothing if that clang cannot.
set(ptx ${OUT}.ptx)
execute_process(COMMAND ${CLANG} --target=nvptx64-nvidia-cuda -x c -std=c17 -O3 -S -o ${ptx} ${SOURCE}/target/cuda/kernel/nvptx.inc
  -D__x86_64__ -D_GNU_SOURCE -w -isystem /usr/include -isystem /usr/include/${ARCH}
  -I${SOURCE}/include -I${SOURCE}/lib/base -I${SOURCE}/lib/net -I${SOURCE}/lib/run -I${SOURCE}/target/cpu/kern
  -I${SOURCE}/target/cuda/kernel -include ${SOURCE}/lib/base/arith.c -include ${SOURCE}/lib/net/units.c
  -Xclang -target-cpu -Xclang sm_80 -Xclang -target-feature -Xclang +ptx72
  -Xclang -fconvergent-functions -ffp-contract=off -fno-math-errno -Xclang -fdenormal-fp-math-f32=preserve-sign,preserve-sign
  RESULT_VARIABLE failed ERROR_VARIABLE messages)
if(failed)
  message(WARNING "Target cuda is built without its kernel, which ${CLANG} did not compile: ${messages}")
  file(WRITE ${OUT} "")
  return()
endif()
file(READ ${ptx} text)
string(REPLACE ".func microprop_train(" ".entry microprop_train(" text "${text}")
file(WRITE ${ptx} "${text}")
file(READ ${ptx} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "${bytes}\n")

# Variables of target cuda for tests and experiments: what they cannot be is refused; without text they are not set.
net
export MICROPROP_CUDA=emulate
for given in DEVICE=abc DEVICE=9 BLOCKS=abc BLOCKS=0 THREADS=33 MEMORY=1M MEMORY=-1 MEMORY=99999999999999999999 SLOT=0x10 SHARED=1 CLUSTER=17 GROUPS=2 WORK=0 FAULT=x FAULT=memory FAULT=job:0; do
	echo "MICROPROP_CUDA_$given"
	(export "MICROPROP_CUDA_$given"; t train xor.topo --target cuda --epochs 2 --quiet)
done
for given in EMULATE emulate:x emulate:-1; do
	echo "MICROPROP_CUDA=$given"
	MICROPROP_CUDA=$given t train xor.topo --target cuda --epochs 2 --quiet
done
for name in BLOCKS THREADS MEMORY SLOT FAULT DUMP DEVICE; do export MICROPROP_CUDA_$name=; done
t train xor.topo --target cuda --epochs 2 --quiet --json | grep -o '"fingerprint": "[0-9a-f]*"'
$MICROPROP train xor.topo --epochs 2 --quiet --json | grep -o '"fingerprint": "[0-9a-f]*"'
unset MICROPROP_CUDA_FAULT
# Without a driver, the self-test of a GPU says so.
export MICROPROP_CUDA=emulate MICROPROP_CUDA_FAULT=driver
BUILD=$(dirname "$MICROPROP") "$SOURCE_DIR/bench/cuda-selftest" golden; echo "exit $?"
BUILD=/nonexistent "$SOURCE_DIR/bench/cuda-selftest" golden; echo "exit $?"
BUILD=$(dirname "$MICROPROP") "$SOURCE_DIR/bench/cuda-selftest" nothing; echo "exit $?"

# Training, saving, going on, measuring.
net
t train xor.topo --target ref
t train xor.topo make:xor --target=ref --save w.safetensors --json
t test xor.topo w.safetensors make:xor --target ref
t test xor.topo w.safetensors --target ref --json --outputs out.npy
ls -l out.npy | awk '{ print $5 }'

# 20 epochs are 10 and 10 more, whatever the batch.
for batch in all 1 3; do
	t train xor.topo --target ref --batch $batch --epochs 20 --until never --json
	t train xor.topo --target ref --batch $batch --epochs 10 --until never --save half.safetensors --json
	t train xor.topo --resume half.safetensors --epochs 20 --json
done
t train xor.topo --resume half.safetensors --rate 0.2
t train xor.topo --load half.safetensors --epochs 1 --rate 0.2 --json

# Test data, and a curve.
t train xor.topo --target ref --test make:xor --epochs 200 --report 20 --until never --curve
LC_ALL=C.UTF-8 t train xor.topo --target ref --epochs 200 --report 20 --until never --curve
t train xor.topo --target ref --epochs 5 --words 3
sed 's/out 1 output/out 1 linear output/' xor.topo >linear.topo
t train linear.topo --target ref --rate 1e6 --quiet

# Words, and a full device.
cat >letters.topo <<-END
	defaults 1989
	group in 203 input
	group out 26 output
	connect in, true -> out
	train batch 64 rate 0.02 error cross-entropy epochs 1 until never
	data "make:letters"
END
t train letters.topo --target ref --words 4
t train xor.topo --target ref --epochs 2 --save /dev/full/x
(ulimit -f 1; t train xor.topo --epochs 2 --quiet --json --save limited.safetensors) 2>&1 | cat
ls | grep limited
"$MICROPROP" train xor.topo --target ref --epochs 2 --json >/dev/full
echo "exit $?"

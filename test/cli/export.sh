# export: formats by ending, messages for what cannot be
net
t train xor.topo --save xor.safetensors --quiet --epochs 300
t export xor.safetensors xor.onnx
t export xor.topo xor.safetensors xor.c
cat xor.h
t export xor.safetensors net.out --format js
t export xor.safetensors xor.npz --json
t data xor.npz
t export xor.safetensors small.c --int8 make:xor
t export xor.safetensors small.c --int8 make:xor --json
t export xor.safetensors xor.onnx --int8 make:xor
t export xor.safetensors xor.bin
t export xor.safetensors xor.out --format xml
t export xor.safetensors
t export xor.topo xor.onnx
t export xor.safetensors xor.safetensors
t export xor.safetensors none/xor.onnx
cat >settle.topo <<END
group in 2 input
group a 3
group b 1 output
connect in, true, b -> a
connect a, true -> b
train ticks 4 epochs 1
data "make:xor"
END
t train settle.topo --save settle.safetensors --quiet
t export settle.safetensors settle.onnx
t export settle.safetensors settle.js
t help export --json | head -c 100
echo
# ONNX with the sums of predict has nodes for every source; not for any number of them
cat >wide.topo <<END
group in 5000 input
group out 1 output
connect in -> out
END
printf 'inputs 5000\n[3] : 1\n[4999] : 0\n' >wide.txt
t train wide.topo wide.txt --epochs 1 --save wide.safetensors --quiet >/dev/null
t export wide.safetensors wide.onnx
t export wide.safetensors wide.onnx --plain
t export wide.safetensors wide.c --plain

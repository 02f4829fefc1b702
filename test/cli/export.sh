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

# import: ONNX, and PyTorch's names of tensors
cp "$SOURCE_DIR"/test/legacy/files/mlp.onnx "$SOURCE_DIR"/test/legacy/files/torch.safetensors .
printf '0 0 0\n1 0 -1\n.5 2 -.25\n' >cases.txt
t import mlp.onnx mlp.topo
cat mlp.topo
t import mlp.onnx mlp.safetensors
t predict mlp.safetensors cases.txt
t predict mlp.onnx cases.txt
t export mlp.safetensors exact.onnx
t predict exact.onnx cases.txt
t export mlp.safetensors again.onnx --plain
t predict again.onnx cases.txt
cat >iris.csv <<END
length,kind
1,a
2,b
3,a
4,b
5,b
END
t train iris.csv --save iris.safetensors --epochs 2 --quiet --hidden 2 >/dev/null
t export iris.safetensors iris.onnx --plain
t import iris.onnx back.safetensors 2>&1 | tail -3
# a state_dict
cat >torch.topo <<END
group in 3 input
group a 5 tanh
group b 5 tanh
group out 2 linear output
connect true, in -> a
connect true, a -> b
connect b, true -> out
END
t import torch.topo torch.safetensors model.safetensors
t predict model.safetensors cases.txt
sed 's/a 5/a 4/' torch.topo >other.topo
t predict other.topo torch.safetensors cases.txt

# What is said about lines that are wrong.
net
t
t trian xor.topo
t xyzzy
t --vresion
t train
t train xor.topo --rte 0.1
t train xor.topo --xyzzyxyzzy
t train xor.topo --rate
t train xor.topo --rate abc --momentum 2
t train xor.topo --rule adma
t train xor.topo --until soon
t train xor.topo --target moon
t train xor.topo --json=1
t train xor.topo -x
t train xor.topo make:xor more
t train xor.topo --load a --resume b
t train xor.topo missing.npz
t train missing.topo
t train xor.topo --words x
t train xor.topo --patience 3
t train xor.topo make:parity:4
t train xor.topo --resume missing.safetensors
t test xor.topo
t test xor.topo missing.safetensors make:xor
t show xor.topo --stage plant
t data
t data make:xor --split 0.8
t data make:xor a.npz --split 1.8
t data make:xor a.npz b.npz
t data make:xor a.npz --scale much
t data make:xor a.npz --first x
t data --make xyzzy
t data make:xor a.docx
t --man 2
t --completion tcsh
t help xyzzy
# Where the result goes is known to be right before the work starts.
t train xor.topo --save no/such/w.safetensors
t train xor.topo --save .
t train xor.topo --save -
t train xor.topo --save /dev/stdout
t train xor.topo --save xor.topo/w
t train xor.topo --run xor.topo
t train xor.topo --run ''
t test xor.topo w.safetensors --outputs no/out.npy
t predict xor.topo w.safetensors --output ..
sed '/^data/d' xor.topo >no-data.topo
t train no-data.topo
t train -- --odd.topo

# Training on the simulated GF11: the same commands, files and messages as on any target.
net
t train xor.topo --target gf11 --procs 3 --epochs 100 --until never
for sum in ring tree pipelined halving; do
	t train xor.topo --target gf11 --procs 4 --sum $sum --epochs 20 --until never --json
done
t train xor.topo --target gf11 --procs 4 --epochs 20 --until never --sigmoid power2 --json

# 20 epochs are 12 and 8 more; a test in between changes nothing.
t train xor.topo --target gf11 --procs 3 --batch 3 --epochs 20 --until never --json
t train xor.topo --target gf11 --procs 3 --batch 3 --epochs 12 --until never --test make:xor --save half.safetensors --json
t train xor.topo --resume half.safetensors --epochs 20 --json
t train xor.topo --resume half.safetensors --procs 4
t test xor.topo half.safetensors --target gf11 --procs 5
t test xor.topo half.safetensors --target ref
t train xor.topo --target gf11 --procs 4 --rule quickprop --epochs 20 --until never --json
t train xor.topo --target gf11 --procs 4 --rule quickprop --epochs 8 --until never --save part.safetensors --json
t train xor.topo --resume part.safetensors --epochs 20 --json
t train xor.topo --target gf11 --procs 4 --sum halving --range-check 0.05 --epochs 20 --until never --json

# What it cannot do, or has no room for.
t train xor.topo --target gf11 --procs 600
t train xor.topo --target gf11 --machine moon
t train xor.topo --target gf11 --rule doug
t train "$SOURCE_DIR/examples/reber.topo" --target gf11 --bptt full
cat >large.topo <<-END
	defaults 1989
	group in 9000 input
	group out 1 output
	connect in -> out
END
awk 'BEGIN { for (i = 0; i <= 9000; i++) printf "%sc%d", i ? "," : "", i; print ""
	for (i = 0; i <= 9000; i++) printf "%s0.5", i ? "," : ""; print "" }' >large.csv
sizes() { sed -E 's/takes [0-9]+ words of SRAM beside [0-9]+/takes N words of SRAM beside N/'; }
t train large.topo large.csv --target gf11 2>&1 | sizes
t show large.topo --stage program --target gf11 2>&1 | sizes
t show xor.topo --stage program --target gf11 | grep -E '^(program|SRAM|DRAM|limits|bundles)'

# A broken machine: what happened is counted, and written down.
t train xor.topo --target gf11 --procs 3 --epochs 20 --until never --json --fault dead:1 --fault stuck:2:dram:5:30:1 --fault-log log
head -n 2 log
echo '# two faults
misroute:0:0.01   # now and then
flip:0.001:sram' >faults
t train xor.topo --target gf11 --procs 3 --epochs 2 --until never --json --fault faults --fault-seed 3
t train xor.topo --target gf11 --procs 3 --epochs 20 --until never --json --fault stuck:9:reg:1:1
t train xor.topo --target gf11 --fault crossbar:input:24
t train xor.topo --target ref --fault dead:1
t train xor.topo --restarts 3 --target gf11 --fault dead:1
echo 'dead:1 dead:2' >faults
t train xor.topo --target gf11 --fault faults

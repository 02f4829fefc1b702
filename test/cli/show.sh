# The network at every stage.
net
t show xor.topo
t show xor.topo --json
t show xor.topo --stage net
t show xor.topo --stage plan --target ref
t show xor.topo --stage program --target ref
t show xor.topo --stage program --target cpu --input dense
t show xor.topo --stage program --target cpu --input index
t show xor.topo --stage program --target ref --error squared --rule adam
t show xor.topo --stage plan --error squared
t show xor.topo --precision nonsense
t show xor.topo --stage plan --target ref --json
t show xor.topo --stage plant --json
cat >bad.topo <<-END
	group in 2 input
	group out 1 output
	connect inn -> out
	train rte 3
END
t show bad.topo
t show bad.topo --json

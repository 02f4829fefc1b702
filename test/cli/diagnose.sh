# Finding what is broken before a run: a small machine, faults of every kind, trials.
net
printf 'base gf11\nprocessors 14 assumed\nswitch-ports 16 ports assumed\ncrossbar 4 ports assumed\ndisks 2 units assumed\n' >small.machine
diagnose() {
	t gf11 diagnose xor.topo --machine small.machine --cases 40 "$@" 2>&1 | sed -E \
		-e 's/[.0-9]+ s of the host/TIME of the host/' -e 's/"(host_word_seconds|simulated_cycles)": [-+.0-9e]+/"\1": N/g' \
		-e 's/^# [0-9]+ simulated cycles, (.*), [-+.0-9e]+ simulated seconds/# N simulated cycles, \1, N simulated seconds/'
}
diagnose
diagnose --json
diagnose --fault dead:3 --fault stuck:7:sram:1030:3:1 --fault stuck:8:reg:255:0:1 --fault alu:2:0.5 --fault flip:0
diagnose --fault port:9 --fault link:input:0:1 --fault misroute:5:0.5 --json
diagnose --sum ring --compiler best --fault crossbar:middle:2 --json
diagnose --procs 6 --fault link:middle:0:1 --sum pipelined
diagnose --trials 40 --json
diagnose --trials 30 --trials-of switch --sum halving
# What is wrong, and what would be right.
diagnose --fault nothing:3
diagnose --fault dead:14
diagnose --trials 3 --trials-of moon
diagnose --trials 3 --procs 3
diagnose --procs 2 --fault dead:0 --fault dead:1
diagnose --procs 2..3
# Training goes on without what is broken, and to the same bits.
for broken in '' '--fault dead:0 --fault stuck:3:sram:1024:30:1 --fault link:input:0:2 --fault crossbar:output:1 --fault alu:10:0.01'; do
	t train xor.topo --target gf11 --machine small.machine --procs 7 --epochs 30 --until never --diagnose $broken 2>&1 |
		grep -E '^(note|fingerprint|faults)'
done
t train xor.topo --target gf11 --machine small.machine --procs 7 --epochs 30 --until never | grep '^fingerprint'
t train xor.topo --target gf11 --machine small.machine --procs 14 --diagnose --fault dead:2

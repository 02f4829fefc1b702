# The machine of 1989: its parameters, the routines of the library, microcode, traces, the switch, speed.
t gf11 machine gf11-ring
t gf11 machine --machine gf11-356 --json
t gf11 efficiency --routines --level 0
t gf11 efficiency --routines --level 0 --json
t gf11 microcode vector-add --level 0 | sed -n '1,12p;$p'
"$MICROPROP" gf11 microcode matrix-vector --level 0 --json | tr ',' '\n' | grep -c microcode
# Text of microcode assembles back; memory is the same however a routine is run.
"$MICROPROP" gf11 microcode exchange --level 0 >exchange.mc
t gf11 microcode exchange.mc | tail -2
for how in '' --traced --simulate '--threads 1' '--threads 2'; do
	t gf11 run exchange --level 0 --procs 100 $how | grep checksum
done
t gf11 run exchange.mc --procs 100 --threads 1
t gf11 run exchange.mc --procs 100 --threads 1 --json
# The help names every routine.
"$MICROPROP" gf11 --help | tr -s ' \n' ' ' >help
for name in $("$MICROPROP" gf11 microcode 2>&1 | sed -n 's/.*routines are: //p'); do
	grep -qE " $name(,|\.| and)" help || echo "the help lacks $name"
done
t gf11 trace matrix-vector --level 0 --kanata m.kanata --chrome m.json
head -c 12 m.kanata
echo
wc -l <m.kanata
head -c 60 m.json | head -1
t gf11 switch tree:3 --json
t gf11 switch random:7:500 --dead link:input:3:5 --json
t gf11 switch random:7 --dead crossbar:middle:3
t gf11 switch random:7 --dead crossbar:middle:3 --json
t gf11 switch random:1..20:500 --json
t gf11 switch ring | tail -1
printf '0 5\n5 0\n' >pairs
t gf11 switch pairs --paths --json | sed 's/"microseconds": [-+.0-9e]*/"microseconds": N/' | cut -c1-300
t gf11 program "$SOURCE_DIR/examples/xor.topo" --procs 4 --cases 4
t gf11 program "$SOURCE_DIR/examples/xor.topo" --procs 4 --cases 4 --routine 0 --json
t gf11 program "$SOURCE_DIR/examples/xor.topo" --procs 4 --cases 4 --routine 99
t gf11 switch pairs --json
t bench gf11 --threads 1 --sum halving --json |
	sed -E 's/"kernel": "[^"]*"/"kernel": "K"/; s/"(simulated_[a-z]+|host_ms|median_ms|measured)": [-+.0-9e]+/"\1": N/g'
# What does not fit is a row of the report.
printf 'base gf11\nblock 300 lines assumed\n' >short.machine
t gf11 efficiency --routines --level 0 --machine short.machine
t gf11 updates "$SOURCE_DIR/examples/xor.topo" --cases 16 --procs 4 --sum tree | sed -n 1,9p
# What is wrong, and what would be right.
t gf11
t gf11 efficency --routines
t gf11 efficiency --routines extra
t gf11 efficiency --routines --dead port:3
t gf11 efficiency --routines --level 99
t gf11 microcode
t gf11 microcode sigmoid
t gf11 trace dot
t gf11 trace dot --kanata no-such-folder/x
t gf11 machine no-such-machine
t gf11 machine gf11 --machine gf11-ring
t gf11 run
t gf11 run exchange.mc --simulate
t gf11 run dot --procs 0
t gf11 run no-such-file.mc
printf 'routine twice\nlines 30\n0 | const 0x1 -> r1 | | |\n1 | const 0x2 -> r999 | | |\n... 28 empty\n' >bad.mc
t gf11 microcode bad.mc
printf 'routine loads\nlines 30\n0 | | load s[4] -> r1 | | xfer k0, r1 -> r2\n... 29 empty\n' >clash.mc
t gf11 microcode clash.mc
t gf11 switch ring --dead crossbar:9:9
t gf11 switch random:1..5:900
t bench ref
t bench gf11 --threads many

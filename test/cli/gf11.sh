# The machine of 1989: its parameters, the routines of the library, microcode, traces, the switch, speed.
t gf11 machine gf11-ring
t gf11 machine --machine gf11-356 --json
t gf11 efficiency --routines --level 0
t gf11 efficiency --routines --level 0 --json
t gf11 microcode vector-add --level 0 | sed -n '1,12p;$p'
"$MICROPROP" gf11 microcode matrix-vector --level 0 --json | tr ',' '\n' | grep -c microcode
t gf11 trace matrix-vector --level 0 --kanata m.kanata --chrome m.json
head -c 12 m.kanata
echo
wc -l <m.kanata
head -c 60 m.json | head -1
t gf11 switch tree:3 --json
t gf11 switch random:7:500 --dead link:input:3:5 --json
t gf11 switch random:7 --dead crossbar:middle:3
t gf11 switch ring | tail -1
printf '0 5\n5 0\n' >pairs
t gf11 switch pairs --json
t bench gf11 --threads 1 --json | sed 's/"kernel": "[^"]*"/"kernel": "K"/'
# What is wrong, and what would be right.
t gf11
t gf11 efficency --routines
t gf11 efficiency
t gf11 efficiency --routines extra
t gf11 efficiency --routines --dead port:3
t gf11 efficiency --routines --level 99
t gf11 microcode
t gf11 microcode sigmoid
t gf11 trace dot
t gf11 trace dot --kanata no-such-folder/x
t gf11 machine no-such-machine
t gf11 switch ring --dead crossbar:9:9
t bench ref
t bench gf11 --threads many

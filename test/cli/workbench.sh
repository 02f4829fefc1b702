# The workbench: operations as text scheduled, run with values in and out, listed.
t gf11 ops
t gf11 ops store dram --json
t gf11 ops fmol
# A schedule of the operations in the comments of a listing has the results of the listing.
for name in dot sigmoid-table exchange; do
	"$MICROPROP" gf11 run $name --procs 30 | grep checksum
	"$MICROPROP" gf11 microcode $name | "$MICROPROP" gf11 schedule - | "$MICROPROP" gf11 run - --procs 30 | grep checksum
	"$MICROPROP" gf11 microcode $name --operations | "$MICROPROP" gf11 schedule - | "$MICROPROP" gf11 run - --procs 30 --traced | grep checksum
	"$MICROPROP" gf11 microcode $name --operations | "$MICROPROP" gf11 run - --procs 30 --simulate | grep checksum
done
axpy=$SOURCE_DIR/examples/axpy.ops
values='--set sram:100=1.5,2,3 --set sram:200=10,20,30 --set sram:300=2'
t gf11 schedule "$axpy"
"$MICROPROP" gf11 schedule "$axpy" >axpy.mc
t gf11 run axpy.mc $values --show sram:200..202
"$MICROPROP" gf11 schedule "$axpy" | t gf11 run - $values --show sram:200..202
t gf11 run "$axpy" $values --show sram:200..202 --simulate
t gf11 run axpy.mc $values --set sram:201@3=-1 --set sram:100@0..1=0.5 --show sram:200..202 --show reg:0..3@2..4 --procs 6
t gf11 run axpy.mc $values --show sram:200..201 --procs 2 --json
t gf11 run axpy.mc --fill zero --show sram:110..119:hex --show sram:1024:int --procs 1
"$MICROPROP" gf11 run axpy.mc --show sram:2000 --show dram:9 | tail -3
# Memory of a relocation register, conditions, routes of the switch.
printf 'load s[b1+0] -> x\nload s[b1+1] -> y\nflt.lt x, y -> w\nselect w, x, y -> low\nxfer k0, low -> other\nfadd low, other -> z\nstore z -> s[b1+2]\n' >least.ops
t gf11 run least.ops --set sram:b1+0=1,2 --set sram:b1+0@1=5 --base 1=3000 --show sram:b1+0..2 --show cond:0 --procs 4
t gf11 run least.ops --set sram:b1+0=1,2 --set sram:b1+0@1=5 --route 0=ring --show sram:b1+2 --procs 4
# A register that the host sets may be read.
printf 'routine r\nlines 25\n0 | fadd r4, r5 -> r6 | | |\n... 24 empty\n' >reg.mc
t gf11 run reg.mc --set reg:4=1.5,2 --show reg:4..6 --procs 1
t gf11 run reg.mc --show reg:4..6
# What is wrong, and what would be right.
t gf11 run axpy.mc --show sram:99999
t gf11 run axpy.mc --show sram:100..90
t gf11 run axpy.mc --show sram:100:octal
t gf11 run axpy.mc --set sram:100
t gf11 run axpy.mc --set sram:100=1,two
t gf11 run axpy.mc --set sram:100..102=1,2
t gf11 run axpy.mc --set sram:16383=1,2
t gf11 run axpy.mc --set sram:10@7=1 --procs 4
t gf11 run axpy.mc --set ram:10=1
t gf11 run axpy.mc --base 1
t gf11 run axpy.mc --fill ones
t gf11 run least.ops --route ring
t gf11 run "$axpy" --simulate --show reg:0
printf 'fad x, y -> z\nload s[100] -> alpha\nfadd alfa, alpha -> z\nfadd alpha -> z\nconst abc -> q\nselect w0, alpha, alpha -> z\n' >bad.ops
t gf11 schedule bad.ops
t gf11 run bad.ops
t gf11 schedule least.ops --machine gf11-ring --level 0 --json | tr ',' '\n' | grep -E '"(name|cycles|checked|assembles_back)"'
"$MICROPROP" gf11 microcode dot | grep -v '(6)' | t gf11 schedule - 2>&1 | grep -v '^ '
printf 'routine a\nlines 1\n0 | | | |\n' | t gf11 schedule -
t gf11 schedule
# The debugger, by a script.
debug() { printf '%b' "$1" | t gf11 debug "$2" $values --procs 4 $3; }
debug 's\n\nw 3\nflight\nuntil r3\nregisters\nlist\nu sram:200\nset sram:202@1=5\nc\np sram:200..202@0..1\nquit\n' axpy.mc
debug 'until 31\nflight\nuntil z\nprint z\np q\nu 9999\nrestart\nr\np z\nstap\n' "$axpy"
debug 'switch\nbases\nproc 2\nuntil cond:0\nprint cond:0@0..3' least.ops '--route 0=ring'
debug 's\nstap\nc\nquit\n' axpy.mc --json
debug 's\n' axpy.mc --traced
debug 's\n' -
debug 's\n' axpy.mc '--level none'
debug 's\n' axpy.mc '--fill ones'
debug 's\n' no-such.mc
# Sums step by step; pictures.
t gf11 steps tree --procs 6
t gf11 steps ring --procs 3 --json
t gf11 steps halving
t gf11 steps ring --procs 99
for what in "schedule $axpy" "schedule $axpy --dependences" "trace $axpy" 'switch tree:3' 'steps pipelined --procs 4'; do
	"$MICROPROP" gf11 $what --svg x.svg >/dev/null && grep -o '<title>[^<]*</title>' x.svg | head -1
done
t gf11 schedule "$axpy" --dependences
t gf11 switch random:1..3 --svg x.svg
t gf11 sweep sum=ring --net "$SOURCE_DIR/examples/xor.topo" --svg x.svg
# An epoch in the order of time: its cycles are those of the sweep.
"$MICROPROP" gf11 program --procs 64 --cases 256 --timeline | head -4
"$MICROPROP" gf11 program --procs 64 --cases 256 --timeline --json | tr '}' '\n' | sed -n 's/.*"cycles": \([0-9]*\), "host": \([0-9]*\)/\1 \2/p' | awk '{ n += $1 + $2 } END { print n }'
"$MICROPROP" gf11 sweep procs=64 --cases 256 | awk 'NR == 2 { print $(NF - 1) }'

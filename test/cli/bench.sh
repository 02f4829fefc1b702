# What bench can measure, and messages for what it cannot.
export MICROPROP_ISA=generic
"$MICROPROP" bench --list --json | grep -c '"isa": "generic", "here": true, "used": true'
t bench --list | grep -E '^(generic|nettalk|8-3-8|mlp784|elman|reading|settling)'
# What is wrong, and what would be right.
t bench --only xor
t bench --only nettalk:7
t bench --threads 0
t bench --rounds many
t bench --machine gf11
t bench cpu gpu
MICROPROP_ISA=sse9 t bench --list 2>&1 | grep error

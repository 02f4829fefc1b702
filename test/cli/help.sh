# Help in all its forms.
t --version
t --version --json | sed -E 's/: ("[^"]*"|\[[^]]*\])/: VALUE/2g'
MICROPROP_ISA=abacus t --version --json
t --help
t help
t help train
t test --help
t predict -h
t help show
t help data
t help help
t help show --json
"$MICROPROP" help --json | grep -c '"summary"'
t --man options

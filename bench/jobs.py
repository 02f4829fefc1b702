# SPDX-License-Identifier: MIT
"""What bench/ranks and bench/cluster share: jobs of several processes, and what they print."""
import json, os, subprocess, sys

os.environ.update({'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'OMPI_MCA_rmaps_base_oversubscribe': '1',
                   'OMPI_MCA_btl_vader_single_copy_mechanism': 'none', 'OMPI_MCA_hwloc_base_binding_policy': 'none'})
# Through memory, and over TCP of this computer alone.
MEMORY = {'OMPI_MCA_btl': 'self,vader'}
TCP = {'OMPI_MCA_btl': 'self,tcp', 'OMPI_MCA_btl_tcp_if_include': 'lo', 'MPIR_CVAR_NOLOCAL': '1', 'UCX_TLS': 'tcp,self', 'UCX_NET_DEVICES': 'lo'}


def mpis(microprop, only=None):
    """Those that are installed and have a module beside the program."""
    def has(mpi):
        return os.path.exists(os.path.join(os.path.dirname(microprop), f'microprop-{mpi}.so')) and \
            any(os.access(os.path.join(p, f'mpirun.{mpi}'), os.X_OK) for p in os.environ['PATH'].split(':'))
    found = [m for m in ('openmpi', 'mpich') if only in (None, m) and has(m)]
    return found or sys.exit('no MPI here, or its module was not built')


def bench_program(microprop, name):
    path = os.path.join(os.path.dirname(microprop), name)
    return path if os.access(path, os.X_OK) else sys.exit(f'{path} is missing; build it first: ninja -C build {name}')


def job(mpi, ranks, *words, env=MEMORY, enter=()):
    """The JSON object that a job prints, in one line."""
    words = list(map(str, [f'mpirun.{mpi}', '-n', ranks, *enter, *words] if ranks > 1 else words))
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **env})
    line = done.stdout.split('\n')[0]
    if done.returncode or not line.startswith('{'):
        sys.exit(f'{" ".join(words)}: {done.stderr}')
    return json.loads(line)


def epoch(microprop, run, topo, data, batch, threads, epochs):
    """Seconds of an epoch; run starts a job of these words."""
    r = run(microprop, 'train', topo, data, '--batch', batch, '--threads', threads, '--until', 'never', '--epochs', epochs, '--rate', '1e-9',
            '--quiet', '--json')
    return r['seconds'] / r['epochs']

"""Processes for tests of frameworks whose import takes seconds: imported once, then the processes are forked."""

import json
import os
import sys
import traceback


def launch(folder, name, world_size, environment, work):
    """Runs `work(rank)` in that many processes to their end, several with the variables of torchrun; what each returned,
    None for one that failed."""
    pids = []
    for rank in range(world_size):
        if (pid := os.fork()) == 0:
            code = 1
            try:
                os.environ |= environment
                if world_size > 1:
                    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size), "LOCAL_RANK": str(rank)}
                (folder / f"{name}-{rank}.json").write_text(json.dumps(work(rank)))
                code = 0
            except BaseException:  # noqa: BLE001 - the child ends with `os._exit`, whatever happened
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    paths = [folder / f"{name}-{rank}.json" for rank in range(world_size)]
    return [json.loads(path.read_text()) if path.exists() else None for path in paths]

"""Two ranks train with DistributedDataParallel and stop making progress in step 5: `RANK=R WORLD_SIZE=2 train_hang.py FAULT`.

`asleep`: rank 1 does not come back; `different`: it enters another operation of the same group. With a GPU both ranks use it, with
NCCL: each is a host of its name, since NCCL refuses two ranks of one host on one GPU."""

import os
import sys
import time

RANK = int(os.environ["RANK"])
os.environ |= {"NCCL_HOSTID": f"host{RANK}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}

import torch  # noqa: E402
import torch.distributed as distributed  # noqa: E402

import trackway  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def waits_for_a_lock():
    time.sleep(600)


def main(fault: str) -> None:
    torch.set_num_threads(1)
    run = trackway.attach()
    distributed.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
    torch.manual_seed(1)
    network = torch.nn.Linear(6, 4, bias=False).to(DEVICE)
    model = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    start = run.resume(model=model, optimizer=optimizer)
    for step in range(start, 20):
        if step == 5 and RANK == 1:
            if fault == "asleep":
                waits_for_a_lock()
            distributed.all_gather([torch.ones(3, device=DEVICE) for _ in range(2)], torch.ones(3, device=DEVICE))
        optimizer.zero_grad()
        loss = model(torch.randn(8, 6, device=DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        run.log(step, loss=loss.item())
        run.checkpoint(step)
        print(f"step {step}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])

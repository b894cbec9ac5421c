"""PyTorch in several processes, one way a case: torch_processes.py CASE."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from answer import answer

WIDTH = 256


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.full((WIDTH,), float(index % 7))


def loader(start):
    """DataLoader's workers, started in that way after this process has used the GPU."""
    total = torch.zeros((), device="cuda")
    rows = torch.utils.data.DataLoader(Squares(), batch_size=32, num_workers=3, pin_memory=True,
                                       multiprocessing_context=start, persistent_workers=True)

    def epoch():
        for batch in rows:
            total.add_(batch.cuda(non_blocking=True).square().sum())

    epoch()
    epoch()
    expected = 2 * WIDTH * sum((index % 7) ** 2 for index in range(400))
    assert total.item() == expected, (total.item(), expected)
    answer([total.item()], epoch, torch.cuda.synchronize)


def doubled(incoming, outgoing):
    """The other process, until it gets no tensor."""
    while (tensor := incoming.get()) is not None:
        tensor.mul_(2)
        torch.cuda.synchronize()
        del tensor
        outgoing.put("done")


def shared_tensor():
    """A tensor of the GPU goes to another process, which doubles it in place. Then others follow."""
    spawn = mp.get_context("spawn")
    there, back = spawn.Queue(), spawn.Queue()
    child = spawn.Process(target=doubled, args=(there, back), daemon=True)
    child.start()
    tensor = torch.arange(100000, device="cuda", dtype=torch.float32)
    there.put(tensor)
    assert back.get(timeout=90) == "done"
    assert torch.equal(tensor, 2 * torch.arange(100000, device="cuda", dtype=torch.float32))

    def another():
        there.put(torch.ones(100000, device="cuda"))
        assert back.get(timeout=30) == "done"

    answer([tensor.sum().item()], another)
    there.put(None)
    child.join(30)


def net():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH)]
    return torch.nn.Sequential(*layers).cuda()


def train(model, rank):
    """The losses of some steps, and the step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(number=0):
        x = torch.randn(50 + 30 * number, WIDTH, generator=torch.Generator().manual_seed(100 * rank + number)).cuda()
        optimizer.zero_grad(set_to_none=True)
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return [step(number) for number in range(20)], step


def meeting_place():
    return os.path.join(tempfile.mkdtemp(), "meeting")


def join_group(backend, rank, size, meeting):
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=size)


def ddp():
    join_group("nccl", 0, 1, meeting_place())
    answer(*train(torch.nn.parallel.DistributedDataParallel(net(), device_ids=[0]), 0))
    dist.destroy_process_group()


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    join_group("nccl", 0, 1, meeting_place())
    first, first_step = train(FullyShardedDataParallel(net(), device_id=0), 0)
    sharded = net()
    fully_shard(sharded)
    second, second_step = train(sharded, 0)
    answer(first + second, lambda: (first_step(), second_step()))
    dist.destroy_process_group()


def as_rank(rank, size, meeting):
    """One process of a group on one GPU: gradients are averaged over gloo."""
    if meeting is None:  # torchrun says in the environment who and where
        dist.init_process_group("gloo")
    else:
        join_group("gloo", rank, size, meeting)
    rank = dist.get_rank()
    losses, step = train(torch.nn.parallel.DistributedDataParallel(net(), device_ids=[0]), rank)
    total = torch.tensor(losses, dtype=torch.float64)
    dist.all_reduce(total)

    def together(go_on=True):
        """A step of all ranks, as long as the first, which alone is asked for more, wants another."""
        wanted = torch.tensor([int(go_on)])
        dist.broadcast(wanted, 0)
        if wanted.item():
            step()
        return bool(wanted.item())

    if rank == 0:
        answer(total.tolist(), together)
        together(go_on=False)
    else:
        while together():
            pass
    dist.destroy_process_group()


def two_ranks():
    """This process is the first rank: a child has no standard input on which it could be asked for more."""
    meeting = meeting_place()
    other = mp.get_context("spawn").Process(target=as_rank, args=(1, 2, meeting), daemon=True)
    other.start()
    as_rank(0, 2, meeting)
    other.join(30)
    assert other.exitcode == 0, other.exitcode


if __name__ == "__main__":
    CASES = {"loader_fork": lambda: loader("fork"), "loader_spawn": lambda: loader("spawn"),
             "shared_tensor": shared_tensor, "ddp": ddp, "fsdp": fsdp, "two_ranks": two_ranks,
             "torchrun_rank": lambda: as_rank(None, None, None)}
    CASES[sys.argv[1]]()

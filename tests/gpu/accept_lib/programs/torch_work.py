"""PyTorch as people use it, one way a case: torch_work.py CASE."""
import sys
import threading

import torch
from answer import answer

WIDTH = 512


def model():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH)]
    return torch.nn.Sequential(*layers, torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WIDTH)).cuda()


def batch(number):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(64 + 96 * (number % 13), WIDTH, generator=generator).cuda()


def trained(net, forward, steps=40, same_size=False):
    """Tells the losses of some steps; more of them are timed."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    batches = [batch(0 if same_size else number) for number in range(13)]

    def step(number=0):
        optimizer.zero_grad(set_to_none=True)
        loss = (forward(batches[number % 13]) - batches[number % 13].roll(1, 1)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step(number).item() for number in range(steps)]
    answer(losses, lambda: [step(number) for number in range(13)], torch.cuda.synchronize)


def eager():
    net = model()
    trained(net, net)


def compiled():
    net = model()
    trained(net, torch.compile(net, dynamic=True))


def reduce_overhead():
    net = model()
    trained(net, torch.compile(net, mode="reduce-overhead"), same_size=True)


def graphs():
    """Two graphs that share a pool, each replayed on new input, against the same without graphs."""
    net, pool = model(), torch.cuda.graph_pool_handle()
    inputs, outputs, captured = [torch.zeros(rows, WIDTH, device="cuda") for rows in (200, 1000)], [], []
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for each in inputs:
                net(each)
        torch.cuda.current_stream().wait_stream(side)
        for each in inputs:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                outputs.append(net(each).sin())
            captured.append(graph)
        worst, sums = 0.0, []
        for number in range(20):
            for static, output, graph in zip(inputs, outputs, captured):
                static.normal_(generator=torch.Generator("cuda").manual_seed(number))
                graph.replay()
                worst = max(worst, (output - net(static).sin()).abs().max().item())
                sums.append(output.square().mean().item())
        assert worst < 1e-4, worst
    answer(sums, lambda: [graph.replay() for graph in captured], torch.cuda.synchronize)


def threads():
    """Inference by several threads, each on a stream of its own, against one thread's results."""
    net = model()
    batches = [batch(number) for number in range(26)]
    with torch.no_grad():
        alone = [net(each).sum().item() for each in batches]

    def serve(results, part):
        stream = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(stream):
            stream.wait_stream(torch.cuda.default_stream())
            for number in range(part, len(batches), 4):
                results[number] = net(batches[number]).sum().item()

    def all_threads():
        results = [None] * len(batches)
        workers = [threading.Thread(target=serve, args=(results, part)) for part in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return results

    for _ in range(10):
        together = all_threads()
        assert all(abs(a - b) <= 1e-3 * max(abs(a), 1) for a, b in zip(alone, together)), (alone, together)
    answer(alone, all_threads, torch.cuda.synchronize)


def triton_kernel():
    import triton
    import triton.language as tl

    @triton.jit
    def scaled_sum(x, y, out, count, BLOCK: tl.constexpr):
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = index < count
        tl.store(out + index, tl.load(x + index, inside) * 3 + tl.load(y + index, inside), inside)

    def once(count):
        x, y = torch.arange(count, device="cuda", dtype=torch.float32), torch.ones(count, device="cuda")
        out = torch.empty_like(x)
        scaled_sum[(triton.cdiv(count, 1024),)](x, y, out, count, BLOCK=1024)
        return x, y, out

    sums = []
    for count in (1, 1000, 12345, 1 << 20):
        x, y, out = once(count)
        assert torch.equal(out, x * 3 + y)
        sums.append(out.double().mean().item())
    answer(sums, lambda: once(1 << 20), torch.cuda.synchronize)


CASES = {case.__name__: case for case in (eager, compiled, reduce_overhead, graphs, threads, triton_kernel)}
CASES[sys.argv[1]]()

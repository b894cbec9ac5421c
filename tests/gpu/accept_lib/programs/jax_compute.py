"""A few steps of gradient descent in JAX, against NumPy doing the same."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
from answer import answer

STEPS, RATE = 20, 0.05


def loss(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights) - y) ** 2)


def host_step(weights, x, y):
    out = np.tanh(x @ weights)
    return weights - RATE * (x.T @ (2 * (out - y) / out.size * (1 - out**2)))


def main():
    assert jax.devices()[0].platform in ("gpu", "cuda"), jax.devices()
    rng = np.random.default_rng(0)
    host = rng.standard_normal((257, 63)).astype(np.float32) * 0.1
    device = jnp.asarray(host)
    step = jax.jit(lambda w, x, y: w - RATE * jax.grad(loss)(w, x, y))
    with jax.default_matmul_precision("highest"):
        for i in range(STEPS):
            rows = 100 + 37 * i  # a new size each time: new allocations and a new compilation
            x = rng.standard_normal((rows, 257)).astype(np.float32)
            y = rng.standard_normal((rows, 63)).astype(np.float32)
            host = host_step(host, x, y)
            device = step(device, x, y)
    error = float(np.abs(np.asarray(device) - host).max())
    assert error < 1e-4, error
    print(f"RIGHT to {error:.1e}")
    answer(np.asarray(device).sum(axis=0)[:8], lambda: step(device, x, y).block_until_ready())


main()

"""The benchmark's models in PyTorch, written plainly: GPT-2, and LLaVA (CLIP's encoder, a projector, Llama's decoder).

    module = build(figures, sequence)       # on the default device, in the default dtype
    loss = module(batch)                    # mean over the labels that count

What ../../models/skeletons exports from Hugging Face's classes, without what a training step doesn't need;
attention is F.scaled_dot_product_attention.
"""

import torch
import torch.nn.functional as F
from torch import nn


def attend(q, k, v, heads, causal, rotary=None):
    """[batch, tokens, hidden] each; `rotary`: cosines and sines [tokens, head]."""
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    if rotary is not None:
        cosines, sines = rotary
        q, k = (x * cosines + torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1) * sines for x in (q, k))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2)


def token_loss(logits, labels):
    """Position i predicts the label of i + 1, and the last one nothing: logits without it would be a copy."""
    return F.cross_entropy(logits.flatten(0, 1), F.pad(labels[:, 1:], (0, 1), value=-100).flatten(), ignore_index=-100)


class Gpt2Block(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.c_attn, self.c_proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.c_fc, self.c_out = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def forward(self, x):
        x = x + self.c_proj(attend(*self.c_attn(self.ln_1(x)).chunk(3, -1), self.heads, causal=True))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, figures, sequence):
        super().__init__()
        decoder = figures.decoder
        self.wte = nn.Embedding(decoder.vocab, decoder.hidden)  # the head's weight, too
        self.wpe = nn.Embedding(sequence, decoder.hidden)
        self.blocks = nn.ModuleList(
            Gpt2Block(decoder.hidden, decoder.heads, decoder.ffn) for _ in range(decoder.layers))
        self.ln_f = nn.LayerNorm(decoder.hidden)

    def forward(self, batch):
        ids = batch["input_ids"]
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return token_loss(F.linear(self.ln_f(x), self.wte.weight), ids)


class ClipBlock(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.q, self.k, self.v, self.out = (nn.Linear(hidden, hidden) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def forward(self, x):
        y = self.norm_1(x)
        x = x + self.out(attend(self.q(y), self.k(y), self.v(y), self.heads, causal=False))
        y = self.fc1(self.norm_2(x))
        return x + self.fc2(y * torch.sigmoid(1.702 * y))


class Clip(nn.Module):
    """Features of the patches, of the last layer that is computed."""

    def __init__(self, encoder):
        super().__init__()
        self.patches = nn.Conv2d(3, encoder.hidden, encoder.patch, encoder.patch, bias=False)
        self.token = nn.Parameter(torch.empty(encoder.hidden))
        self.positions = nn.Embedding(encoder.rows + 1, encoder.hidden)
        self.norm = nn.LayerNorm(encoder.hidden)
        self.blocks = nn.ModuleList(
            ClipBlock(encoder.hidden, encoder.heads, encoder.ffn) for _ in range(encoder.layers))

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], 1, -1), x), 1) + self.positions.weight
        x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        return x[:, 1:]


class LlamaBlock(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.RMSNorm(hidden, 1e-5), nn.RMSNorm(hidden, 1e-5)
        self.q, self.k, self.v, self.out = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(hidden, ffn, bias=False) for _ in range(2))
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x, rotary):
        y = self.norm_1(x)
        x = x + self.out(attend(self.q(y), self.k(y), self.v(y), self.heads, causal=True, rotary=rotary))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llava(nn.Module):
    """The image's rows are the first of a sample."""

    def __init__(self, figures, sequence):
        super().__init__()
        decoder, encoder = figures.decoder, figures.encoder
        self.vision = Clip(encoder)
        self.projector = nn.Sequential(nn.Linear(encoder.hidden, decoder.hidden), nn.GELU(),
                                       nn.Linear(decoder.hidden, decoder.hidden))
        self.embed = nn.Embedding(decoder.vocab, decoder.hidden)
        self.blocks = nn.ModuleList(
            LlamaBlock(decoder.hidden, decoder.heads, decoder.ffn) for _ in range(decoder.layers))
        self.norm = nn.RMSNorm(decoder.hidden, 1e-5)
        self.head = nn.Linear(decoder.hidden, decoder.vocab, bias=False)
        size = decoder.hidden // decoder.heads
        rates = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
        angles = torch.outer(torch.arange(sequence, dtype=torch.float32), torch.cat((rates, rates)))
        self.register_buffer("cosines", angles.cos().to(torch.get_default_dtype()))
        self.register_buffer("sines", angles.sin().to(torch.get_default_dtype()))

    def forward(self, batch):
        image = self.projector(self.vision(batch["pixel_values"]))
        x = torch.cat((image, self.embed(batch["input_ids"][:, image.shape[1]:])), 1)
        for block in self.blocks:
            x = block(x, (self.cosines, self.sines))
        return token_loss(self.head(self.norm(x)), batch["labels"])


def build(figures, sequence):
    """With the initial values of the recipes: weights of norms 1, biases 0, others normal of deviation 0.02."""
    module = (Llava if figures.encoder is not None else Gpt2)(figures, sequence)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.ndim == 1 and name.endswith("weight"):
                parameter.fill_(1.0)
            else:
                parameter.normal_(0.0, 0.02)
    return module


def random_batch(figures, batch, sequence, device, dtype):
    """Tokens and pixels of no meaning, in the shapes of the case."""
    generator = torch.Generator(device).manual_seed(0)
    ids = torch.randint(0, figures.decoder.vocab, (batch, sequence), generator=generator, device=device)
    if figures.encoder is None:
        return {"input_ids": ids}
    encoder = figures.encoder
    labels = ids.clone()
    labels[:, :encoder.rows] = -100
    pixels = torch.randn(batch, 3, encoder.image, encoder.image, generator=generator, device=device)
    return {"input_ids": ids, "labels": labels, "pixel_values": pixels.to(dtype)}

"""Every number that docs/kl.md and docs/objectives.md quote, computed anew.

A page quotes numbers in four ways. Inline code `expression = number` is evaluated. A Python block is run and
has to print the text block below it. Tables are recomputed from their first columns. Any other number in the
running text has to be one of those, possibly rounded, or a setting listed in `GIVEN`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import math
import re
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from surefoot.algorithms import PPOConfig
from surefoot.algorithms.schedules import AdaptiveKL
from surefoot.algorithms.surrogates import PenalizedSurrogate
from surefoot.distributions import Gaussian
from surefoot.functional import approx_kl, clipped_surrogate, gae, value_loss

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = ("kl.md", "objectives.md")
NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
# Settings, inputs of examples and claims about others; nothing that could be computed.
GIVEN = {
    "0.01",
    "0.07",
    "0.1",
    "0.2",
    "0.4",
    "0.5",
    "0.6",
    "0.8",
    "1.2",
    "0.001",
    "0.95",
    "0.05",
    "0.99",
    "1.5",
    "0.02",
    "0.005",
}


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def agrees(value: float, printed: str) -> bool:
    """Whether `printed` is `value` rounded to the digits it has."""
    last_digit = Decimal(printed).as_tuple().exponent
    assert isinstance(last_digit, int)
    return abs(value - float(printed)) <= 0.5000001 * 10.0**last_digit


# Inline code


@cache
def equations(page: str) -> list[tuple[str, str]]:
    """Inline code `expression = number` whose expression needs nothing but math."""
    spans = re.findall(r"`([^`]+)`", without_blocks(text_of(page)))
    found = (re.fullmatch(rf"(.+) = ({NUMBER})", " ".join(span.split())) for span in spans)
    return [(match[1], match[2]) for match in found if match and is_arithmetic(match[1])]


def is_arithmetic(expression: str) -> bool:
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        return False
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names <= {"log", "exp", "sqrt", "pi"}


@pytest.mark.parametrize(("page", "expression", "printed"), [(p, *eq) for p in PAGES for eq in equations(p)])
def test_inline_equation(page, expression, printed):
    value = eval(expression, {"log": math.log, "exp": math.exp, "sqrt": math.sqrt, "pi": math.pi})
    assert agrees(value, printed), f"{page}: {expression} is {value}, not {printed}"


@pytest.mark.parametrize(("page", "at_least"), [("kl.md", 40), ("objectives.md", 14)])
def test_inline_equations_are_found(page, at_least):
    assert len(equations(page)) >= at_least


# Python blocks


@cache
def python_blocks(page: str) -> list[tuple[str, str]]:
    blocks = re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text_of(page), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == text_of(page).count("```python"), "a Python block without its output below"
    return blocks


@pytest.mark.parametrize(("page", "number"), [(p, n) for p in PAGES for n in range(len(python_blocks(p)))])
def test_python_block_prints_the_text_below_it(page, number):
    code, printed = python_blocks(page)[number]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, f"{page}, block {number + 1}", "exec"), {})
    assert output.getvalue() == printed


# Tables


def table(page: str, *first_headers: str) -> list[list[str]]:
    """Cells of the rows of the table whose header begins with these cells."""
    lines = without_blocks(text_of(page)).split("\n")
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    (start,) = [i for i, row in enumerate(rows) if row[: len(first_headers)] == list(first_headers)]
    end = next(i for i in range(start, len(rows)) if not rows[i])
    return rows[start + 2 : end]


def gaussian(cell: str) -> Gaussian:
    mean, std = ast.literal_eval(cell)
    return Gaussian(torch.tensor([[float(mean)]]), torch.tensor([[float(std)]]))


def test_case_B6_divergences_of_gaussians():
    rows = table("kl.md", "old (mean, std)")
    assert len(rows) == 5
    for old, new, printed, _ in rows:
        assert agrees(gaussian(old).kl(gaussian(new)).item(), printed), (old, new)
    assert gaussian("(0, 1)").kl(gaussian("(0, 1)")).item() == 0.0


def test_terms_of_one_sample():
    rows = table("kl.md", "r")
    assert [row[0] for row in rows] == ["0.5", "0.8", "1.0", "1.2", "2.0"]
    for r, *printed in rows:
        log_ratio = torch.tensor([float(r)], dtype=torch.float64).log()
        x = log_ratio.item()
        values = (-x, (float(r) - 1) ** 2 / 2, x**2 / 2, approx_kl(log_ratio).item())
        assert all(agrees(value, text) for value, text in zip(values, printed, strict=True)), r


def moments_by_quadrature(d: float) -> list[tuple[float, float]]:
    """Mean and variance under N(0, 1) of the terms k1, the note's, k2, k3 for a new policy N(d, 1)."""
    actions = torch.linspace(-20, 20, 40_001, dtype=torch.float64).unsqueeze(1)
    old, new = (Gaussian(torch.full_like(actions, mean), torch.ones_like(actions)) for mean in (0.0, d))
    weights = old.log_prob(actions).exp() * (40 / 40_000)
    x = new.log_prob(actions) - old.log_prob(actions)
    terms = (-x, x.expm1().square() / 2, x.square() / 2, x.expm1() - x)
    means = [(weights * term).sum() for term in terms]
    variances = [(weights * (term - mean).square()).sum() for term, mean in zip(terms, means, strict=True)]
    return [(m.item(), v.item()) for m, v in zip(means, variances, strict=True)]


def test_bias_and_spread_of_the_estimates():
    for d, kl, *printed in table("kl.md", "d"):
        assert agrees(float(d) ** 2 / 2, kl)
        for (mean, variance), cell in zip(moments_by_quadrature(float(d)), printed, strict=True):
            printed_mean, printed_std = cell.split(" ± ")
            assert agrees(mean, printed_mean), (d, cell)
            assert agrees(math.sqrt(variance), printed_std), (d, cell)


@pytest.mark.parametrize("d", [0.1, 0.5, 1.0])
def test_formulas_of_bias_and_spread(d):
    rows = table("kl.md", "", "mean", "variance of one term")
    for (_, *formulas), moments in zip(rows, moments_by_quadrature(d), strict=True):
        for formula, moment in zip(formulas, moments, strict=True):
            code = re.sub(r"(\d) q", r"\1 * q", formula.strip("`")).replace("^", "**")
            code = re.sub(r"(\d) exp", r"\1 * exp", code)
            assert eval(code, {"q": d**2, "exp": math.exp}) == pytest.approx(moment, rel=1e-6), formula


def test_returns_of_both_kinds():
    rewards, values = torch.ones(3, 1), torch.full((3, 1), 2.0)
    terminated, never = torch.tensor([[False], [False], [True]]), torch.zeros(3, 1, dtype=torch.bool)
    expected = [torch.tensor([1 + 0.99 + 0.99**2, 1 + 0.99, 1.0])]
    for lam in (1.0, 0.95):
        expected.append(
            gae(rewards, values, torch.zeros(1), terminated, never, gamma=0.99, lam=lam)[1].flatten()
        )
    for (_, printed), returns in zip(table("kl.md", "", "returns"), expected, strict=True):
        assert all(agrees(*pair) for pair in zip(returns.tolist(), printed.split(", "), strict=True)), printed


def test_case_B9_clipped_loss_and_gradient():
    rows = table("objectives.md", "A", "r", "dual_clip")
    assert len(rows) == 6
    for advantage, r, dual_clip, loss, gradient, _ in rows:
        ratio = torch.tensor([float(r)], requires_grad=True)
        dual = None if dual_clip == "none" else float(dual_clip)
        value = clipped_surrogate(ratio, torch.tensor([float(advantage)]), 0.2, dual)
        value.backward()
        assert agrees(value.item(), loss), (advantage, r)
        assert gradient_of(ratio) == float(gradient), (advantage, r)


def gradient_of(x: Tensor) -> float:
    assert x.grad is not None
    return x.grad.item()


def test_case_B7_learning_rate_rule():
    for kl, before, after, _ in table("objectives.md", "KL, target 0.01"):
        cfg = PPOConfig()
        rule = AdaptiveKL(cfg.desired_kl, cfg.kl_adaptation_factor, cfg.learning_rate_range)
        rate = torch.tensor(float(before), dtype=torch.float64)
        rule.begin_update(rate, 0.0)
        rule.observe_kl(rate, torch.tensor(0.0))  # the policy compared with itself
        rule.observe_kl(rate, torch.tensor(float(kl)))
        assert agrees(rate.item(), after), (kl, before)


def test_penalty_rule():
    for kl, before, after in table("objectives.md", "KL of the update, target 0.01"):
        penalty = PenalizedSurrogate(float(before), PPOConfig().desired_kl)
        penalty.observe_kl(torch.tensor(float(kl)))
        assert penalty.coef.item() == float(after), kl


def test_clipped_value_loss():
    for v, target, plain, clipped, counts, gradient in table("objectives.md", "V", "R"):
        values = torch.tensor([float(v)], requires_grad=True)
        returns, old = torch.tensor([float(target)]), torch.zeros(1)
        loss = value_loss(values, old, returns, clip_param=0.2)
        loss.backward()
        assert agrees(value_loss(values, old, returns).item(), plain)
        assert agrees(value_loss(values.clamp(-0.2, 0.2), old, returns).item(), clipped)
        assert agrees(loss.item(), counts)
        assert agrees(gradient_of(values), gradient)


def test_defaults_in_the_tables_of_settings():
    cells = re.findall(r"^\| `(\w+)` \| ([\w.]+) \|", text_of("objectives.md"), re.MULTILINE)
    assert len(cells) == 11
    for name, printed in cells:
        default = getattr(PPOConfig(), name)
        assert (str(default) if default is not None else "none") == printed, name


# The running text


@pytest.mark.parametrize("page", PAGES)
def test_no_number_in_the_text_comes_from_nowhere(page):
    text = without_blocks(text_of(page))
    tables = "\n".join(line for line in text.split("\n") if line.startswith("|"))
    outputs = "\n".join(printed for _, printed in python_blocks(page))
    backed = "\n".join(f"{expression} = {printed}" for expression, printed in equations(page))
    known = {float(number) for number in re.findall(NUMBER, "\n".join((tables, outputs, backed)))}
    prose = "\n".join(line for line in text.split("\n") if not line.startswith(("|", "![", "    ")))
    prose = re.sub(r"\]\([^)]*\)", "", prose)
    for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", prose):
        assert number in GIVEN or any(agrees(value, number) for value in known), f"{page}: {number}"


def test_case_A14_the_page_on_time_limits_has_both_outcomes_of_one_example():
    """Case A2's data; `gae` computes what the table says."""
    rewards, values = torch.tensor([[1.0], [0.0], [2.0], [1.0]]), torch.tensor([[0.5], [0.4], [0.3], [0.2]])
    ends, nothing = torch.tensor([[False], [True], [False], [False]]), torch.zeros(4, 1, dtype=torch.bool)
    outcomes = {
        "a time limit, V(s_final) = 1.0": (nothing, ends),
        "a termination": (ends, nothing),
        "no boundary at all (a leak: wrong)": (nothing, nothing),
    }
    text = text_of("time-limits.md")
    for label, (terminated, truncated) in outcomes.items():
        advantages, _ = gae(
            rewards, values, torch.tensor([0.6]), terminated, truncated,
            gamma=0.9, lam=0.8, final_values=torch.ones(4, 1),
        )  # fmt: skip
        numbers = re.search(rf"\| {re.escape(label)} \| (.*?) \|", text)
        assert numbers, label
        assert [float(number) for number in numbers[1].split(", ")] == pytest.approx(
            advantages.flatten().tolist(), abs=5e-7
        )

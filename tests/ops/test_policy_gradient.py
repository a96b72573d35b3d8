import pytest
import torch

from rllib_impass.ops.policy_gradient import masked_mean, policy_objective

# Ratios below, inside and above 1 ± 0.2, each with advantages of both signs.
RATIOS = torch.tensor([0.5, 0.5, 0.9, 0.9, 1.1, 1.1, 2.0, 2.0])
ADVANTAGES = torch.tensor([1.0, -1.0] * 4)


def objective_and_gradient(ratio_clip):
    log_mu = torch.full_like(RATIOS, -0.3)
    log_pi = (log_mu + RATIOS.log()).requires_grad_()
    objective = policy_objective(log_pi, log_mu, ADVANTAGES, ratio_clip=ratio_clip)
    objective.sum().backward()
    return objective.detach(), log_pi.grad


@pytest.mark.parametrize("clip_pg_rho", [0.7, 1.0, 3.0])
def test_without_a_clip_it_is_the_papers_gradient(clip_pg_rho):
    log_pi = (RATIOS.log() - 0.3).requires_grad_()
    objective = policy_objective(
        log_pi,
        torch.full_like(RATIOS, -0.3),
        ADVANTAGES,
        ratio_clip=None,
        clip_pg_rho=clip_pg_rho,
    )
    objective.sum().backward()
    rhos = torch.tensor([min(clip_pg_rho, ratio) for ratio in RATIOS.tolist()])
    torch.testing.assert_close(objective.detach(), rhos * log_pi.detach() * ADVANTAGES)
    torch.testing.assert_close(log_pi.grad, rhos * ADVANTAGES)


def test_with_a_clip_it_is_ppos_objective():
    objective, _ = objective_and_gradient(0.2)
    expected = [
        min(r * a, min(max(r, 0.8), 1.2) * a)
        for r, a in zip(RATIOS.tolist(), ADVANTAGES.tolist(), strict=True)
    ]
    torch.testing.assert_close(objective, torch.tensor(expected))


def test_a_step_that_has_gone_too_far_has_no_gradient():
    _, gradient = objective_and_gradient(0.2)
    went_too_far = [False, True, False, False, False, False, True, False]
    assert (gradient == 0).tolist() == went_too_far
    inside = ~torch.tensor(went_too_far)
    torch.testing.assert_close(gradient[inside], (RATIOS * ADVANTAGES)[inside])


@pytest.mark.parametrize("ratio_clip", [None, 0.2])
def test_ratios_beyond_all_bounds_stay_finite(ratio_clip):
    log_pi = torch.tensor([500.0, -500.0], requires_grad=True)
    objective = policy_objective(
        log_pi, torch.zeros(2), torch.tensor([-1.0, 1.0]), ratio_clip=ratio_clip
    )
    (objective * torch.zeros(2)).sum().backward()
    assert torch.isfinite(objective).all()
    assert torch.isfinite(log_pi.grad).all()


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="shapes must be equal"):
        policy_objective(
            torch.zeros(3), torch.zeros(3), torch.zeros(3, 1), ratio_clip=None
        )


def test_the_mean_is_over_valid_entries():
    values = torch.tensor([1.0, 100.0, 3.0])
    assert masked_mean(values, torch.tensor([1.0, 0.0, 1.0])).item() == 2.0


def test_the_mean_of_nothing_is_zero():
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    mean = masked_mean(values, torch.zeros(2))
    mean.backward()
    assert mean.item() == 0.0
    assert (values.grad == 0).all()

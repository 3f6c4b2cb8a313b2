"""sb3-contrib: MaskablePPO and RecurrentPPO on one seat's view."""

from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.utils import get_action_masks
from trial import report, single


def masked(game):
    env = single(game)
    kind = "MultiInputPolicy" if hasattr(env.observation_space, "spaces") else "MlpPolicy"
    model = MaskablePPO(kind, env, n_steps=64, batch_size=64, n_epochs=1, seed=1).learn(64)
    observation, _ = env.reset(seed=1)
    masks = get_action_masks(env)
    action, _ = model.predict(observation, action_masks=masks)
    assert masks[action], (action, masks)


def recurrent(game):
    env = single(game)
    kind = "MultiInputLstmPolicy" if hasattr(env.observation_space, "spaces") else "MlpLstmPolicy"
    RecurrentPPO(kind, env, n_steps=64, batch_size=64, n_epochs=1, seed=1).learn(64)


if __name__ == "__main__":
    report({"MaskablePPO, one copy": masked, "RecurrentPPO, one copy": recurrent})

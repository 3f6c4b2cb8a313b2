"""sb3-contrib: MaskablePPO and RecurrentPPO on one seat's view and on copies."""

from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.utils import get_action_masks
from trial import COPIES, copies, identity, masked, report, single

from llm_games.wrappers.sb3 import SB3VecEnv


def maskable(game):
    env = single(game)
    kind = "MultiInputPolicy" if masked(env.observation_space) else "MlpPolicy"
    model = MaskablePPO(kind, env, n_steps=64, batch_size=64, n_epochs=1, seed=1).learn(64)
    observation, _ = env.reset(seed=1)
    masks = get_action_masks(env)
    action, _ = model.predict(observation, action_masks=masks)
    assert masks[action], (action, masks)


def typed(game):
    discrete = identity(game, "Discrete")
    model = MaskablePPO("MlpPolicy", discrete, n_steps=64, batch_size=64, n_epochs=1, seed=1)
    seen = model.learn(64).get_env().reset()
    masks = get_action_masks(model.get_env())
    action, _ = model.predict(seen, action_masks=masks)
    assert masks[0, action[0]], (action, masks)


def recurrent(game):
    env = single(game)
    recur(env, 64)


def recur(env, steps):
    kind = "MultiInputLstmPolicy" if masked(env.observation_space) else "MlpLstmPolicy"
    n_steps = steps // getattr(env, "num_envs", 1)
    RecurrentPPO(kind, env, n_steps=n_steps, batch_size=64, n_epochs=1, seed=1).learn(steps)


def many(game):
    env = SB3VecEnv(copies(game))
    kind = "MultiInputPolicy" if masked(env.observation_space) else "MlpPolicy"
    model = MaskablePPO(kind, env, n_steps=16, batch_size=64, n_epochs=1, seed=1)
    model.learn(16 * COPIES)
    action, _ = model.predict(env.reset(), action_masks=(masks := get_action_masks(env)))
    assert masks[range(COPIES), action].all(), (action, masks)


def many_recurrent(game):
    recur(SB3VecEnv(copies(game)), 16 * COPIES)


if __name__ == "__main__":
    report(
        {
            "MaskablePPO, Discrete id": typed,
            "MaskablePPO, one copy": maskable,
            "RecurrentPPO, one copy": recurrent,
            "MaskablePPO, SB3VecEnv": many,
            "RecurrentPPO, SB3VecEnv": many_recurrent,
        }
    )

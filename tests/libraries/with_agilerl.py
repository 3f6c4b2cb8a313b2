"""AgileRL: PPO on copies of one seat's view, IPPO of all seats."""

import supersuit
from agilerl.algorithms import IPPO, PPO
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
from agilerl.training.train_on_policy import train_on_policy
from agilerl.utils.utils import make_vect_envs
from agilerl.vector.pz_vec_env import PettingZooVecEnv
from gymnasium.vector import SyncVectorEnv
from trial import COPIES, copies, identity, masked, report, single, table

from llm_games.wrappers.team_env import TeamVectorEnv

NET = {"encoder_config": {"hidden_size": [32]}, "head_config": {"hidden_size": [32]}}


class Team(PettingZooVecEnv):
    """A `TeamVectorEnv` as AgileRL's own class, which its loops ask for; without masks."""

    def __init__(self, team):
        self.team, numbers = team, {}
        for agent in team.agents:
            space = team.single_observation_space(agent)
            numbers[agent] = space["observation"] if masked(space) else space
        actions = {agent: team.single_action_space(agent) for agent in team.agents}
        super().__init__(team.num_envs, numbers, actions, team.agents)

    def reset(self, *, seed=None, options=None):
        seen, infos = self.team.reset(seed, options)
        return self.plain(seen), infos

    def step(self, actions):
        seen, *found = self.team.step(actions)
        return self.plain(seen), *found

    def plain(self, seen):
        return {a: o["observation"] if isinstance(o, dict) else o for a, o in seen.items()}


def typed(game):
    envs = make_vect_envs(identity(game, "Discrete"), num_envs=4)
    learn(game, envs)
    envs.close()


def ppo(game):
    learn(game, SyncVectorEnv([lambda: single(game, masks="info")] * COPIES))


def native(game):
    learn(game, copies(game, masks="info"))


def learn(game, envs):
    spaces = envs.single_observation_space, envs.single_action_space
    team = PPO.population(
        1,
        *spaces,
        net_config=NET,
        learn_step=16,
        batch_size=64,
        update_epochs=1,
        num_envs=envs.num_envs,
    )
    train_on_policy(
        envs, game, "PPO", team, max_steps=32, evo_steps=16, eval_steps=5, verbose=False
    )


def ippo(game):
    env = table(game, "parallel")
    if hasattr(env.observation_space(env.possible_agents[0]), "spaces"):
        # IPPO of 2.58 fails at any mask in infos: `None in` a list of arrays
        env = supersuit.observation_lambda_v0(
            env, lambda seen, _: seen["observation"], lambda space: space["observation"]
        )
    env = supersuit.black_death_v3(env)  # it gives actions of seats that are out
    agents = env.possible_agents
    seen = [env.observation_space(agent) for agent in agents]
    together(game, env, seen, [env.action_space(agent) for agent in agents])


def team(game):
    env = Team(TeamVectorEnv(game, 4, normalize=True))
    seen = [env.single_observation_space(agent) for agent in env.agents]
    together(game, env, seen, [env.single_action_space(agent) for agent in env.agents])


def together(game, env, seen, actions):
    agents = env.possible_agents
    team = IPPO.population(
        1,
        seen,
        actions,
        agent_ids=agents,
        net_config=NET,
        learn_step=32,
        batch_size=32,
        update_epochs=1,
    )
    train_multi_agent_on_policy(
        env, game, "IPPO", team, max_steps=32, evo_steps=32, eval_steps=5, verbose=False
    )


if __name__ == "__main__":
    report(
        {
            "PPO, make_vect_envs(Discrete id)": typed,
            "PPO, GameVectorEnv": native,
            "PPO, SyncVectorEnv": ppo,
            "IPPO without masks, TeamVectorEnv": team,
            "IPPO without masks, all seats": ippo,
        }
    )

// While a slider is in use: the last pictures are kept, and when all is quiet the ones a step to either side of it are
// computed, so that the next step, or one back, is there at once. Loaded when a slider is first touched.

import { config, root } from "./dom.mjs";
import { trim } from "./state.mjs";

const KEEP = 12; // pictures
const QUIET = 40; // ms without a move, so that a drag is never kept waiting by a guess
const QUICK = 250; // ms: a picture that takes longer is not worth guessing

/** What a slider would set one step up and one step down: [key, URL text]. */
function steps({ id, value, step, min, max }) {
  const { key, scale } = config.controls.find(({ key }) => id === `r-${key}`);
  const near = [+value + +step, value - step].filter((x) => x >= min && x <= max);
  return near.map((x) => [key, `${scale === "log2" ? 2 ** x : x}`]);
}

/** `ask(slot, state)` and `guess(state)` make pictures. → {near(slider, state), ask}: ask with memory and foresight. */
export function ahead(ask, guess) {
  const kept = new Map();
  let quick = root.dataset.picture < QUICK;
  let slider, state, timer;

  function keep(wanted, make) {
    const key = JSON.stringify(trim(wanted));
    let reply = kept.get(key);
    kept.delete(key);
    if (!reply) {
      const began = performance.now();
      const forget = () => kept.get(key) === reply && kept.delete(key);
      reply = make(wanted);
      reply.then((found) => (found ? (quick = performance.now() - began < QUICK) : forget()), forget);
    }
    kept.set(key, reply);
    if (kept.size > KEEP) kept.delete(kept.keys().next().value);
    return reply;
  }

  function wait() {
    clearTimeout(timer);
    const mine = (timer = setTimeout(async () => {
      for (const [key, text] of steps(slider)) {
        if (mine === timer && quick) await keep({ ...state, [key]: text }, guess).catch(() => {});
      }
    }, QUIET));
  }

  return {
    near(one, now) {
      [slider, state] = [one, now];
      wait();
    },
    ask(slot, wanted) {
      clearTimeout(timer);
      [timer, state] = [0, wanted];
      const reply = keep(wanted, (it) => ask(slot, it));
      reply.then(wait, wait);
      return reply;
    },
  };
}

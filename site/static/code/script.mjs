// A studio's state in the address becomes the arguments of its State(...), as Python literals and nothing else: what stands
// in a link is checked against the studio's controls before it is shown as code, and no code runs before Run is pressed.

const INT = /^-?\d{1,15}$/;
const FLOAT = /^-?\d{1,15}(\.\d{1,15})?(e[+-]?\d{1,3})?$/i;

/** The Python literal of one value, or null when the control does not take it. */
export function literal(control, text) {
  const { form, type, min, max, choices } = control;
  if (form === "switch") return text === "1" ? "True" : text === "0" ? "False" : null;
  if (form === "menu") {
    if (!choices.some(([value]) => value === text)) return null;
    return type === "str" ? JSON.stringify(text) : INT.test(text) ? text : null;
  }
  if (!(type === "int" ? INT : FLOAT).test(text)) return null;
  return Number(text) >= min && Number(text) <= max ? text : null;
}

/** {args: "block_size=32, blocks=512", refused: ["pool=-1"]} of a state as text. */
export function args(controls, state) {
  const taken = [];
  const refused = [];
  for (const control of controls) {
    if (!(control.key in state)) continue;
    const value = literal(control, state[control.key]);
    if (value === null) refused.push(`${control.key}=${state[control.key].slice(0, 40)}`);
    else taken.push(`${control.key}=${value}`);
  }
  return { args: taken.join(", "), refused };
}

/** The studio script for studio `name` with its state filled in. */
export function filled(script, name, stateArgs) {
  return script.replaceAll("studios.kv_desk.", `studios.${name}.`).replace("State()", () => `State(${stateArgs})`);
}

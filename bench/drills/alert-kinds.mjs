// What becomes of an alert at each receiver of the drill.

export const receivers = 300

/** Users whose receivers nobody listens for; their alerts come beside those to the others. */
export const gone = 30

/** @typedef {'up' | 'failing' | 'hanging' | 'down'} Kind `failing` answers 500, `hanging` never */
export const kinds = /** @type {const} */ (['up', 'failing', 'hanging', 'down'])

/**
 * @param {number} index of the receiver
 * @returns {Kind}
 */
export function kindOf(index) {
  if (index >= receivers) return 'down'
  return index % 10 === 0 ? 'hanging' : index % 10 === 1 ? 'failing' : 'up'
}

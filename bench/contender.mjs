// What takes part: contenders, the rows that each stands for, and what they have to stand on.

/**
 * @typedef {object} Stage what contenders stand on
 * @property {import('./processes.mjs').Running} upstream
 * @property {import('./services.mjs').Services | undefined} services
 * @property {import('./contenders/gateway.mjs').Gateway} gateway whose tokens the others take
 */

/**
 * @typedef {object} Contender
 * @property {string[]} rows their names
 * @property {(stage: Stage) => string | undefined} [absence] why it cannot take part here
 * @property {(stage: Stage) => Promise<Row[]>} start
 */

/**
 * @typedef {object} Question
 * @property {string} path
 * @property {Record<string, string>} headers
 */

/**
 * @typedef {object} Row one kind of request to one contender
 * @property {string} name
 * @property {import('./processes.mjs').Running} running
 * @property {Question} question what is asked, and checked
 * @property {Question[]} [others] asked as well, in turns by connection: other users' same question
 * @property {number} status of the right answer
 * @property {number} [perSecond] requests in the rounds that count; omitted: as many as are answered
 * @property {number} [connections] omitted: those of the run. A row with its own is not asked at the fixed rate of latencies
 * @property {boolean} fillsItsCore whether a round counts only where it had its core to itself
 * @property {import('./checks.mjs').Check[]} checks
 * @property {string} [version]
 */

/** The host that everything is asked of, in checks as in the rounds: a proxy may decide by it. */
export const host = 'service.example'

/** Bytes of the upstream's answer. */
export const bodyLength = 1024

/** What every contender is asked for, and the path at which the upstream says what it received. */
export const coursePath = (/** @type {string} */ prefix) => `/${prefix}/courses/42?page=3`
export const echoPath = (/** @type {string} */ prefix) => `/${prefix}/courses/echo`

/** @param {string} token */
export const bearer = token => ({ authorization: `Bearer ${token}` })

// The schemas of the `storage` and `limits` sections: the stores, and the daily uses of plan free.
import { Type } from '../../schema/type.ts'
import { formats } from '../formats/formats.ts'
import { formatted, section } from './builders.ts'

const redis = Type.Union(
  [
    formatted('redis'),
    section(
      {
        cluster: Type.Array(formatted('redis_node'), {
          title: 'a list of at least one node',
          description: 'Some nodes of the cluster. The gateway discovers the others.',
          minItems: 1,
        }),
      },
      { description: 'Redis Cluster.' },
    ),
    section(
      {
        sentinels: Type.Array(formatted('redis_node'), {
          title: 'a list of at least one sentinel',
          description: 'Addresses of the sentinels.',
          minItems: 1,
        }),
        name: Type.String({
          title: 'a name',
          description: 'Name of the primary that the sentinels monitor.',
          minLength: 1,
        }),
      },
      { description: 'Redis behind Sentinel.' },
    ),
  ],
  {
    title: `${formats.redis.noun}, or { cluster: […] }, or { sentinels: […], name: … }`,
    description:
      'Redis for counting daily uses and rate limits. Empty: daily uses are counted in Postgres, and rate limits in each process.',
    default: '',
  },
)

export const storage = section(
  {
    postgres: formatted('postgres', {
      description: 'Address of the database. Empty: an embedded database in data_dir.',
      default: '',
    }),
    postgres_listen: formatted('postgres', {
      description:
        'Direct address of the same database for notifications, if postgres goes through a transaction pooler. Empty: same as postgres.',
      default: '',
    }),
    pool: Type.Integer({
      description: 'Maximum number of Postgres connections per process.',
      minimum: 1,
      default: 10,
    }),
    redis,
    data_dir: Type.String({
      title: 'a directory name',
      description: 'Directory of the embedded database.',
      minLength: 1,
      default: './data',
    }),
  },
  { description: 'Postgres and Redis.', default: {} },
)

export const limits = section(
  {
    free_daily: Type.Integer({
      description:
        'Maximum number of uses per UTC day for a user with plan free, in total for all routes with free_daily: true.',
      minimum: 1,
      // The column that counts uses is a Postgres integer.
      maximum: 2_147_483_647,
      default: 1,
    }),
  },
  { description: 'Limits of the plans.', default: {} },
)

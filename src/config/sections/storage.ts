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
          description: 'Some nodes of the cluster; the others are learned from them.',
          minItems: 1,
        }),
      },
      { description: 'Redis Cluster.' },
    ),
    section(
      {
        sentinels: Type.Array(formatted('redis_node'), {
          title: 'a list of at least one sentinel',
          description: 'The sentinels.',
          minItems: 1,
        }),
        name: Type.String({
          title: 'a name',
          description: 'The name of the primary they watch.',
          minLength: 1,
        }),
      },
      { description: 'Redis behind Sentinel.' },
    ),
  ],
  {
    title: `${formats.redis.noun}, or { cluster: […] }, or { sentinels: […], name: … }`,
    description: 'Where usage and limits are counted fast. Empty: usage is counted in Postgres.',
    default: '',
  },
)

export const storage = section(
  {
    postgres: formatted('postgres', {
      description: 'The database of record. Empty: an embedded one in data_dir.',
      default: '',
    }),
    postgres_listen: formatted('postgres', {
      description:
        'A direct address of the same database, to listen at, where `postgres` goes through a transaction pooler. Empty: as `postgres`.',
      default: '',
    }),
    pool: Type.Integer({ description: 'Connections to Postgres per process.', minimum: 1, default: 10 }),
    redis,
    data_dir: Type.String({
      title: 'a folder',
      description: 'The folder of the embedded database.',
      minLength: 1,
      default: './data',
    }),
  },
  { description: 'Where things are kept.', default: {} },
)

export const limits = section(
  {
    free_daily: Type.Integer({
      description: 'Uses per UTC day of plan free on routes with free_daily: true.',
      minimum: 1,
      // The column that counts uses is a Postgres integer.
      maximum: 2_147_483_647,
      default: 1,
    }),
  },
  { description: 'What plans are limited to.', default: {} },
)

// Finds and leases due deliveries. The statement takes as long for a hundred thousand pending deliveries as for ten.
import type { Plans } from '../../config/plans.ts'
import { prepared, type Queryable } from '../../storage/database.ts'
import type { SlotClass } from './delivery-slots.ts'

/** A delivery that this process may send until its lease expires. */
export interface LeasedDelivery {
  id: number
  alert_id: string
  user_id: number
  /** The number of this attempt, starting with 1. The ID and this number identify the lease. */
  attempts: number
  body: string
  url: string
  receiver: string
  /**
   * The secret, as it is stored. `secret_before` is the previous secret; null if only the current secret signs
   * deliveries.
   */
  secret: string
  secret_before: string | null
  registration: number
  /** True if an operator requested one more attempt of a failed delivery. No other attempt follows. */
  is_last: boolean
}

export interface LeaseRequest {
  /** The maximum number of leased deliveries, in total and per receiver. */
  limit: number
  perReceiver: number
  /** For each receiver with running deliveries, how many more deliveries to it can be leased. */
  busyReceivers: ReadonlyMap<string, number>
  /**
   * The slow receivers. The class `slow` leases only deliveries to these receivers. The class `normal` leases only
   * deliveries to other receivers.
   */
  slowReceivers: readonly string[]
  slotClass: SlotClass
  now: Date
  leaseUntil: Date
}

export interface LeaseStore {
  /**
   * Leases due deliveries, the longest due first. Drops deliveries of users who are not active, have no webhook, or
   * have a plan without webhooks. If a user's plan is not configured, the user's deliveries are postponed by one hour.
   * Deletes deliveries of a user who was deleted while the alert was stored. Concurrent callers get different
   * deliveries.
   * @throws StorageError
   */
  lease(request: LeaseRequest): Promise<LeasedDelivery[]>
}

/**
 * The number of due deliveries that are examined first, the longest due first. If too few of them can be leased, the
 * deliveries of up to `walkReceivers` receivers are examined.
 */
const headDeliveries = 64
const walkReceivers = 500

/**
 * The number of due deliveries that are examined after a delivery was postponed, because the plan of its user is not
 * configured. All examined deliveries with this problem are postponed together. Otherwise, they would be at the head of
 * every poll, and later deliveries would wait.
 */
const postponedTogether = 1_000

/** @param plans returns the configured plans */
export function createLeaseStore(
  database: Queryable,
  plans: () => Pick<Plans, 'names' | 'withWebhook'>,
): LeaseStore {
  /** The receiver after which the next walk begins, so that the walks reach every receiver. */
  let lastWalkedReceiver = ''
  return {
    async lease({ limit, perReceiver, busyReceivers, slowReceivers, slotClass, now, leaseUntil }) {
      if ((await database.query(firstDueSql, [now])).length === 0) return []
      const fullReceivers = [...busyReceivers].flatMap(([receiver, free]) => (free > 0 ? [] : [receiver]))
      const rows = await database.query<
        (LeasedDelivery | { id: null }) & { walked: number; walked_to: string | null }
      >(leaseSql, [
        now,
        leaseUntil,
        limit,
        perReceiver,
        [...busyReceivers.keys()],
        [...busyReceivers.values()],
        // For the slow class, the list contains the only receivers to lease for. For the normal class, it contains the
        // receivers to skip.
        slotClass === 'slow'
          ? slowReceivers.filter(receiver => !fullReceivers.includes(receiver))
          : [...slowReceivers, ...fullReceivers],
        slotClass === 'slow',
        lastWalkedReceiver,
        headDeliveries,
        walkReceivers,
        plans().names,
        plans().withWebhook,
        postponedTogether,
      ])
      const [first] = rows
      if (slotClass === 'normal')
        lastWalkedReceiver = first?.walked === walkReceivers ? (first.walked_to ?? '') : ''
      return rows.filter(row => row.id !== null).map(({ walked: _, walked_to: __, ...leased }) => leased)
    },
  }
}

/** This query runs first, because most polls find nothing due. Postgres needs ten times as long to plan `leaseSql`. */
const firstDueSql = prepared(`
  select id from webhook_deliveries
   where status = 'pending' and due_at <= $1::timestamptz
   order by due_at, id limit 1`)

// `head` steps explicitly from row to row, and `walk` steps from receiver to receiver. With a plain LIMIT, Postgres
// would read and sort the whole backlog while its statistics are outdated. The walk runs only if the head is full of
// deliveries that must wait. One query cannot both lock and rank rows, so the rows are locked first. A replica of the
// previous release replaces a webhook without clearing `secret_before`. So `secret_before` is used only if it belongs
// to the current registration.
const leaseSql = `
  with recursive head as (
    (select id, due_at, receiver, 1 as step
       from webhook_deliveries
      where not $8::boolean and status = 'pending' and due_at <= $1::timestamptz
      order by due_at, id limit 1)
    union all
    select next.*, head.step + 1
      from head cross join lateral (
        select id, due_at, receiver
          from webhook_deliveries
         where status = 'pending' and due_at <= $1::timestamptz and (due_at, id) > (head.due_at, head.id)
         order by due_at, id limit 1
      ) next
     where head.step < $10::integer
  ), ahead as (
    select receiver, min(due_at) as due_at from head where receiver <> all($7::text[]) group by receiver
  ), walk as (
    (select receiver, due_at, 1 as step
       from webhook_deliveries
      where (select count(*) from head) = $10::integer and (select count(*) from ahead) < $3::integer
        and status = 'pending' and receiver > $9
      order by receiver, due_at, id limit 1)
    union all
    select next.*, walk.step + 1
      from walk cross join lateral (
        select receiver, due_at
          from webhook_deliveries
         where status = 'pending' and receiver > walk.receiver
         order by receiver, due_at, id limit 1
      ) next
     where walk.step < $11::integer
  ), heads_of_slow as (
    select slow.receiver, next.due_at
      from unnest(case when $8::boolean then $7::text[] end) as slow (receiver) cross join lateral (
        select due_at from webhook_deliveries d
         where d.receiver = slow.receiver and status = 'pending'
         order by due_at, id limit 1
      ) next
  ), found as (
    select receiver, due_at from ahead
    union all select receiver, due_at from walk where receiver <> all($7::text[])
    union all select receiver, due_at from heads_of_slow
  ), open as (
    select receiver from found
     where due_at <= $1::timestamptz
     group by receiver order by min(due_at) limit $3::integer
  ), due as (
    select next.*
      from open left join unnest($5::text[], $6::integer[]) as busy (receiver, free) using (receiver)
           cross join lateral (
        select id, alert_id, user_id, due_at
          from webhook_deliveries
         where receiver = open.receiver and status = 'pending' and due_at <= $1::timestamptz
         order by due_at, id limit coalesce(busy.free, $4::integer)
           for update skip locked
      ) next
  ), judged as (
    select due.*, w.receiver, w.url, w.secret, w.registration,
           case when w.secret_before_until > $1::timestamptz
                 and w.secret_before_until = w.created_at + interval '24 hours' then w.secret_before end as secret_before,
           w.user_id is not null and u.is_active = 1 and u.plan = any($13::text[]) as is_wanted,
           w.user_id is not null and u.is_active = 1 and u.plan <> all($12::text[]) as is_postponed,
           u.id is null as is_orphan
      from due left join users u on u.id = due.user_id left join webhooks w on w.user_id = due.user_id
  ), also_postponed as (
    select id from webhook_deliveries
     where status = 'pending' and due_at <= $1::timestamptz and id = any(array(
       select first.id
         from (
           select id, user_id from webhook_deliveries
            where exists (select from judged where is_postponed) and status = 'pending' and due_at <= $1::timestamptz
            order by due_at, id limit $14::integer
         ) first join users u on u.id = first.user_id
        where u.plan <> all($12::text[]) and u.is_active = 1 and first.id <> all(array(select id from judged))
     ))
       for update skip locked
  ), postponed as (
    update webhook_deliveries d set due_at = $1::timestamptz + interval '1 hour'
      from (select id from judged where is_postponed union all select id from also_postponed) p
     where d.id = p.id
  ), dropped as (
    update webhook_deliveries d set status = 'dropped', finished_at = $1::timestamptz
      from judged j
     where d.id = j.id and not (j.is_wanted or j.is_postponed or j.is_orphan)
  ), deleted as (
    delete from webhook_deliveries d using judged where d.id = judged.id and judged.is_orphan
  ), chosen as (
    select * from judged where is_wanted order by due_at, id limit $3::integer
  ), claimed as (
    update webhook_deliveries d
       set attempts = d.attempts + 1, due_at = $2::timestamptz, leased_until = $2::timestamptz
      from chosen c join alerts a on a.id = c.alert_id
     where d.id = c.id
    returning d.id, d.alert_id, d.user_id, d.attempts, a.body, c.url, c.receiver, c.secret, c.secret_before,
              c.registration, d.retried_at is not null as is_last
  )
  select walked.*, claimed.*
    from (select count(*)::integer as walked, (array_agg(receiver order by step desc))[1] as walked_to from walk) walked
         left join claimed on true`

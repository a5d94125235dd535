// A name can resolve to an address that gives access to cloud credentials, or that belongs to no machine. The gateway
// does not connect to these addresses.
import { describe, expect, it } from 'vitest'
import { mayBeDialled, sortAddresses } from '../../../src/upstream/targets/dialled-addresses.ts'

describe('an address of a name', () => {
  it.each([
    '169.254.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '100.100.100.200',
    '168.63.129.16',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
    '::',
    'fd00:ec2::254',
    '::ffff:169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::1',
    '2001:0:a9fe:a9fe::1',
    '::ffff:100.100.100.200',
    'fd12::5efe:a83f:8110',
  ])('is not used for connections: %s', address => {
    expect(mayBeDialled(address)).toBe(false)
  })

  it.each([
    '10.0.0.1',
    '127.0.0.1',
    '::1',
    '192.168.1.1',
    '100.100.100.201',
    '169.253.255.255',
    '93.184.216.34',
    'fd00::1',
    'fec0::1',
    '2a00::1',
    '::ffff:10.0.0.1',
  ])('is used for connections: %s', address => {
    expect(mayBeDialled(address)).toBe(true)
  })

  it('is listed only once; IPv4 addresses come first, and each family is sorted by the bytes of the address', () => {
    expect(sortAddresses(['::2', '10.0.0.10', '10.0.0.9', '9.0.0.1', '::1', '0:0::2', '10.0.0.9'])).toEqual([
      '9.0.0.1',
      '10.0.0.9',
      '10.0.0.10',
      '::1',
      '::2',
    ])
  })
})

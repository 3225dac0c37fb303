/**
 * `npm run differential [-- --questions N --seed S]`: random models, tuples and questions, asked of this PDP and of a real
 * OpenFGA server, and judged by a reference that shares no code with either. Fails when this PDP is wrong once, and when
 * OpenFGA is for a cause that is not written down in causes.ts. Skipped where OpenFGA neither is nor can be built.
 */
import { misused, readArguments, readNumber } from '../support/programs/arguments.ts'
import { openFgaBinary } from './binary.ts'
import { type Cause, causeOf, causeOfRefusal } from './causes.ts'
import { compareChanges } from './changes.ts'
import { compareCheck, compareList, compareOpenFgaUsers, createJudge, type Verdict } from './judge.ts'
import { type Peer, type Said, startOpenFga } from './openfga.ts'
import { openOurs } from './ours.ts'
import { compareWithTests } from './upstream.ts'
import { type Brought, randomWorld, type World } from './worlds.ts'

const USAGE = 'npm run differential [-- --questions N --seed S | --changes N --worlds M --seed S | --tests FILE…]'
const { values, positionals } = readArguments(
  {
    options: {
      questions: { type: 'string', default: '20000' },
      seed: { type: 'string', default: '1' },
      changes: { type: 'string', default: '0' },
      worlds: { type: 'string', default: '20' },
      tests: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  },
  USAGE,
)
if (values.tests !== positionals.length > 0) misused('FILE and --tests go together', USAGE)
const [questions, firstSeed, worlds] = [
  readNumber('--questions', values.questions, USAGE),
  readNumber('--seed', values.seed, USAGE),
  readNumber('--worlds', values.worlds, USAGE),
]
const changes = values.changes === '0' ? 0 : readNumber('--changes', values.changes, USAGE)

type Tally = {
  questions: number
  refusedByBoth: number
  readonly causes: Map<string, number>
  readonly failures: string[]
}
const FAILURES_MAX = 20

if (values.tests) process.exitCode = await compareWithTests(positionals)
else {
  const binary = openFgaBinary(process.env)
  if ('missing' in binary) console.log(`differential: skipped: ${binary.missing}`)
  else process.exitCode = await compare(binary.path)
}

async function compare(path: string): Promise<number> {
  const peer = await startOpenFga(path)
  const tally: Tally = { questions: 0, refusedByBoth: 0, causes: new Map(), failures: [] }
  try {
    if (changes > 0) return await compareChanges(peer, { changes, worlds, firstSeed })
    for (let seed = firstSeed; tally.questions < questions; seed++) {
      await compareWorld(peer, randomWorld(seed), tally)
      if (tally.failures.length >= FAILURES_MAX) break
    }
  } finally {
    await peer.close()
  }
  for (const failure of tally.failures) console.log(failure)
  for (const [text, count] of tally.causes) console.log(`OpenFGA differs ${count} times: ${text}`)
  console.log(
    `${tally.questions} questions, ${tally.refusedByBoth} models refused by both, ${tally.failures.length} failed`,
  )
  return tally.failures.length === 0 ? 0 : 1
}

async function compareWorld(peer: Peer, world: World, tally: Tally): Promise<void> {
  const [ours, theirs] = [await openOurs(world), await peer.open(world)]
  if ('refused' in ours || 'refused' in theirs) {
    const cause = 'refused' in theirs ? causeOfRefusal(theirs.refused) : undefined
    if ('refused' in ours && 'refused' in theirs) tally.refusedByBoth += 1
    else if (cause !== undefined && !('refused' in ours)) noteCause(tally, cause)
    else
      fail(tally, world, 'the model', {
        ours: 'refused' in ours ? ours : 'taken',
        theirs: 'refused' in theirs ? theirs : 'taken',
      })
    return
  }
  const judge = createJudge(world)
  const settle = (asked: Brought, answers: Answers): void => {
    const { right, ours: mine, theirs: other, ourVerdict, theirVerdict, about } = answers
    const { contextual } = asked
    tally.questions += 1
    const cause =
      theirVerdict === 'right'
        ? null
        : causeOf({
            world: { ...world, tuples: [...world.tuples, ...contextual] },
            contextual,
            about,
            right,
            said: other,
          })
    if (ourVerdict !== 'right' || cause === undefined) fail(tally, world, asked, { right, ours: mine, theirs: other })
    else if (cause !== null) noteCause(tally, cause)
  }
  const [our, their] = [await ours.checks(world.checks), await theirs.checks(world.checks)]
  world.checks.forEach((asked, i) => {
    const [mine, other] = [our[i] ?? NO_ANSWER, their[i] ?? NO_ANSWER]
    const right = judge.check(asked)
    const verdicts = { ourVerdict: compareCheck(right, mine), theirVerdict: compareCheck(right, other) }
    settle(asked, {
      right,
      ours: mine,
      theirs: other,
      ...verdicts,
      about: [`${asked.object}#${asked.relation}`],
    })
  })
  for (const asked of world.objectLists) {
    const [mine, other] = [await ours.listObjects(asked), await theirs.listObjects(asked)]
    const right = judge.objects(asked)
    const verdicts = { ourVerdict: compareList(right, mine), theirVerdict: compareList(right, other) }
    const about = judge.objectsOf(asked.type, asked).map((object) => `${object}#${asked.relation}`)
    settle(asked, { right, ours: mine, theirs: other, ...verdicts, about })
  }
  for (const asked of world.userLists) {
    const [mine, other] = [await ours.listUsers(asked), await theirs.listUsers(asked)]
    const right = judge.users(asked)
    const verdicts = { ourVerdict: compareList(right, mine), theirVerdict: compareOpenFgaUsers(right, other) }
    settle(asked, {
      right,
      ours: mine,
      theirs: other,
      ...verdicts,
      about: [`${asked.object}#${asked.relation}`],
    })
  }
}

type Answer = Said<boolean | readonly string[]>
type Answers = {
  readonly right: boolean | readonly string[] | null
  readonly ours: Answer
  readonly theirs: Answer
  readonly ourVerdict: Verdict
  readonly theirVerdict: Verdict
  readonly about: readonly string[]
}
const NO_ANSWER = { error: 'no answer' }

function fail(tally: Tally, { seed }: World, asked: unknown, found: object): void {
  tally.failures.push(`FAIL seed ${seed}: ${JSON.stringify(asked)}: ${JSON.stringify(found)}`)
}

function noteCause(tally: Tally, { text }: Pick<Cause, 'text'>): void {
  tally.causes.set(text, (tally.causes.get(text) ?? 0) + 1)
}

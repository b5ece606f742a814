// The next time of cron lines by croner and cron-parser: lines LINE TAB ZONE TAB SECOND in, one line with both answers out.
import { createInterface } from "node:readline"
import { Cron } from "croner"
import { CronExpressionParser } from "cron-parser"

const seconds = date => (date ? Math.floor(date.getTime() / 1000) : "never")

// the last Friday is 5L here and in cron-parser, FRI#L in croner
const croner = (line, zone, after) => {
  const fields = line.split(" "), last = fields.length - 1
  fields[last] = fields[last].replace(/(^|,)(\w+)L\b/g, "$1$2#L")
  return seconds(new Cron(fields.join(" "), { timezone: zone, paused: true }).nextRun(new Date(after * 1000)))
}

const parser = (line, zone, after) =>
  seconds(CronExpressionParser.parse(line, { tz: zone, currentDate: new Date(after * 1000) }).next().toDate())

const ask = (peer, line, zone, after) => {
  try {
    return peer(line, zone, Number(after))
  } catch (error) {
    return "refused"
  }
}

const out = []
for await (const line of createInterface({ input: process.stdin })) {
  const [text, zone, after] = line.split("\t")
  out.push(`${ask(croner, text, zone, after)}\t${ask(parser, text, zone, after)}`)
}
process.stdout.write(out.join("\n") + "\n")

// Reads messages, one a line, as the SDK hands them over, and prints what the example makes of each.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { isFor, readMessage } = await import(pathToFileURL(process.argv[2]));
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { applicationProperties, contentType, contentEncoding, body } = JSON.parse(line);
  const message = {
    applicationProperties, contentType, body: Buffer.from(body ?? "", "base64"),
    _rawAmqpMessage: { properties: { contentEncoding } },
  };
  let result;
  try {
    const event = readMessage(message);
    result = { ...event, forOthers: !isFor(event.attributes, "mine-1"), forIts: isFor(event.attributes, "orders-2") };
  } catch (error) {
    result = { error: error.message };
  }
  console.log(JSON.stringify(result));
}

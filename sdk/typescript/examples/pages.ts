/* Fetches the pages of a list, and goes on after a crash where it was: the checkpoint is the number of pages that are done. */
import { Client, Worker, fail } from "stint-sdk";

const worker = new Worker(new Client(), async (job, signal) => {
  const pages: string[] = job.payload.pages;
  if (!pages.length) throw fail("payload.pages is empty", { retry: false });
  for (let number = job.saved ?? 0; number < pages.length; number++) {
    await (await fetch(pages[number]!, { signal })).arrayBuffer(); // ends at once if the task is cancelled
    await job.checkpoint(number + 1);
    await job.progress({ note: `page ${number + 1}`, percent: (100 * (number + 1)) / pages.length });
  }
  return { pages: pages.length };
}, { queues: ["pages"], concurrency: 4 });

await worker.run();

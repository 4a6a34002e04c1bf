import { readdir } from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Metrics } from "../base/metrics.ts";

const RESOLUTION_MS = 20;

/**
 * Adds what Prometheus' own clients tell of a process, and what those for Node.js tell of it, under
 * the same names. Answers with how to stop watching the event loop.
 */
export function addProcessMetrics(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();

  // The histogram holds the time between two ticks, of which the wait that was asked for is no lag.
  const lagSeconds = (ns: number) => Math.max(0, ns / 1e9 - RESOLUTION_MS / 1000);
  const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
    metrics.reading({ type: "gauge", name, help }, read);
  const cpu = (name: string, help: string, read: (usage: NodeJS.CpuUsage) => number) =>
    metrics.reading({ type: "counter", name, help }, () => read(process.cpuUsage()) / 1e6);

  cpu("process_cpu_seconds_total", "CPU time spent, in all.", ({ user, system }) => user + system);
  cpu("process_cpu_user_seconds_total", "CPU time spent in user mode.", ({ user }) => user);
  cpu("process_cpu_system_seconds_total", "CPU time spent in the kernel.", ({ system }) => system);
  gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  gauge("process_start_time_seconds", "Start of the process, since 1970.", () =>
    Math.round(performance.timeOrigin) / 1000
  );
  // Linux alone, and not under Node's permission model: then it is left out.
  gauge("process_open_fds", "Open file descriptors.", async () =>
    (await readdir("/proc/self/fd")).length
  );
  const memory = (name: string, help: string, read: (usage: NodeJS.MemoryUsage) => number) =>
    gauge(name, help, () => read(process.memoryUsage()));
  memory("nodejs_heap_size_total_bytes", "Size of V8's heap.", ({ heapTotal }) => heapTotal);
  memory("nodejs_heap_size_used_bytes", "What of V8's heap is used.", ({ heapUsed }) => heapUsed);
  memory("nodejs_external_memory_bytes", "Buffers outside of V8's heap.", (usage) => usage.external);
  for (const percentile of [50, 99]) {
    gauge(
      `nodejs_eventloop_lag_p${percentile}_seconds`,
      `Lag of the event loop since it was last asked for, percentile ${percentile}.`,
      () => lagSeconds(delay.percentile(percentile)),
    );
  }
  gauge("nodejs_eventloop_lag_max_seconds", "The longest such lag.", () => {
    const max = lagSeconds(delay.max);
    delay.reset(); // it is the last of them
    return max;
  });
  metrics.reading(
    { type: "gauge", name: "nodejs_version_info", help: "Version of Node.js." },
    () => [{ labels: { version: process.version }, value: 1 }],
  );
  return () => void delay.disable();
}

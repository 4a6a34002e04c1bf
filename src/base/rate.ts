/** At most `count` in `windowMs`. */
export interface RateLimit {
  readonly count: number;
  readonly windowMs: number;
  readonly by: "caller" | "app" | "address";
}

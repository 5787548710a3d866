package resend

// MostKept is how many changes are kept while a chunk is read.
const MostKept = mostKept

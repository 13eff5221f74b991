// Package tsz stores time series: points of an int64 time and a float64 value, in a few bits each, every bit kept.
//
// An [Encoder] appends points to a stream as they come, by the scheme of Gorilla (Pelkonen et al., VLDB 2015): of a time
// the change of the interval, of a value the bits that differ from the one before. A [Snapshot] of it can be read while
// it goes on. [Seal] takes points that are complete and makes blocks of them, each in the smallest of several forms: decimal
// numbers, which most gauges and counters are, often take a third there, or less (after ALP: Afroozeh, Kuffó, Boncz,
// SIGMOD 2024). A [Decoder] reads all of it.
//
// # Promises
//
// Values come back bit by bit: payloads of NaN, infinities, -0 and subnormal numbers too. Times come back whatever they
// are. Seal decodes what it made and compares before it returns.
//
// Any bytes can be read: a Decoder does not panic, allocates nothing, never writes to them, and takes time in proportion
// to their length and to what is asked for. It gives as many points as a block states, or an error. In a block every
// changed bit is noticed.
// A bare stream has no checksum; what was changed there may come out as other points.
//
// Nothing here is synced or named: bytes are durable where a storage makes them so.
//
// # Stream
//
// A stream is a row of fields, first bit first, padded with zero bits to a whole byte. It does not state its unit, nor t0,
// the time from which its first interval counts. For each point there is a time, then a value; behind the last one the
// end.
//
// A time is coded as the difference between its interval (to the point before, of the first to t0) and the interval
// before that, which is taken to be 60 before the first in Seconds32, and 0 in the other units:
//
//	prefix  bits behind  holds
//	0                    0
//	10                7  -63 to 64
//	110               9  -255 to 256
//	1110             12  -2047 to 2048
//	11110            32  -2147483647 to 2147483648
//	111110           64  anything else; not in Seconds32
//	111111               the end; 11111 in Seconds32
//
// The first that holds it is used. A field of n bits is the number modulo 2^n: what is greater than 2^(n-1) when read
// stands for the negative number 2^n less. All of it is modulo 2^64, and modulo 2^32 in Seconds32, where the field of 32
// bits therefore holds every difference.
//
// The first value is its 64 bits. Each other value is x, its bits exclusive-or those before it:
//
//	prefix  behind it                               x
//	0                                               0
//	10      width bits                              in the window that was declared last
//	11      5 bits lead, 6 bits width, width bits   in this window, which is declared by it
//
// A window leaves out lead zero bits at the top, and 64-lead-width at the bottom. A width of 64 is written as 0. lead+width
// is at most 64, and a window must be declared before it is used.
//
// An Encoder declares a window of the leading zeros of x, at most 31, and its trailing zeros, unless x fits the last window
// and would waste fewer than 22 bits there. A reader takes any choice; Seal makes a better one. With Seconds32 this is,
// bit for bit, the layout SeriesLong of metrictank.
//
// The older layout Series4h can be read. It begins with 32 bits t0, 14 bits interval and 64 bits value of the first point;
// all others are as above, but in the place of the last three prefixes it has 1111 and 32 bits, and the end is 1111, 32
// one bits and a zero bit. See [Decoder.ResetSeries4h].
//
// # Block
//
// A block is a header and a payload, and states its length: blocks of one series, in order, may stand one behind the other.
// All numbers are big-endian, checksums are CRC-32C (Castagnoli).
//
//	offset  size  field
//	     0     3  magic "tsz"
//	     3     1  version, 1
//	     4     1  codec: 1 stream, 2 packed
//	     5     1  unit: 0 seconds32, 1 seconds, 2 milliseconds, 3 microseconds, 4 nanoseconds
//	     6     1  flags: 1 statistics
//	     7     1  reserved, zero
//	     8     4  number of points
//	    12     4  length of the payload
//	    16     8  time of the first point; without points, t0
//	    24     8  time of the last point; without points, t0
//	    32    24  with statistics only: least, greatest and sum of the values that are not NaN, as float64
//	  end-8    4  checksum of the payload
//	  end-4    4  checksum of the header before it
//
// The header has 40 bytes, with statistics 64. The sum is added in order; without a number the three are +Inf, -Inf and 0.
// A block without points stands alone, and its payload is an empty stream.
//
// The payload of codec 1 is a finished stream. Its t0 is not stated, because the time of the first point is: where the two
// do not agree, the header counts.
//
// # Packed
//
// The payload of codec 2 is one byte, whose low half says how the times are held and whose high half how the values are;
// then the times, then the values. It has 1 to 1024 points. A packed field has equally wide numbers of 0 to 56 bits, first
// bit first, and zero bits up to the next byte. uvarint and varint are those of encoding/binary: 7 bits a byte, lowest
// first, the top bit says that more follow; varint is zigzag.
//
//	times  what follows
//	0      nothing: all intervals are (last-first)/(points-1), without remainder
//	1      3 points or more: width in 1 byte, first interval as uvarint, base as varint, a packed field of points-2 numbers:
//	       base plus number is by how much the next interval is longer (modulo 2^64)
//	2      8 bytes for each time but the first
//
//	values  what follows
//	0       8 bytes: all values
//	1       scale and width in a byte each, base as varint, the number of exceptions as uvarint, a packed field of as many
//	        numbers as points, exceptions: base plus number is the integer of a point
//	2       scale and width in a byte each, the first integer as varint, base as varint, the number of exceptions as uvarint,
//	        a packed field of points-1 numbers, exceptions: base plus number is added to the integer before
//
// An integer d stands for a value by the scale, where 10^k is the float64 nearest to that power, 1e-22 to 1e22:
//
//	scale      value
//	10 to 54   d times 10^(scale-32), rounded to the nearest float64
//	65 to 86   d divided by 10^(scale-64), rounded to the nearest float64
//
// An exception is the position of a point in 2 bytes, counted from 0 and rising, and the 8 bytes of its value, which is in
// the place of what the integer stands for. The integers lie between -2^53 and 2^53, so float64 has all of them exactly.
//
// # Versions
//
// Every block of version 1 is read by every later release, and every stream.
package tsz

// Package egress is the one way in which a node fetches from other machines: model sources aside, everything that speaks
// HTTP to an address which a model, a page or a plugin has named goes through it.
//
// What holds:
//
//  1. Only http and https. A URL that can be read in two ways (numbers in place of a dotted quad, zones, user names,
//     control characters) is refused and not guessed at.
//  2. The address that is dialed is checked, at the moment of the connect, against the table of special-use networks. A
//     name that changes its address between look-up and connect gains nothing, because no address is dialed unchecked.
//     Addresses that carry another one inside (mapped, translated, tunnelled) are judged by the one inside.
//  3. What the owner allows by name or network is let through, and nothing beyond it; metadata services of clouds,
//     multicast and broadcast are never.
//  4. Every redirect goes through the same checks. Once a redirect has left the origin, headers of the caller other than
//     the harmless ones are gone for good, also when a later redirect comes back.
//  5. Proxies named by the environment are ignored. TLS is verified, from version 1.2 on.
//  6. Size and time are bounded. The size is that of the decoded body, so that a compressed one cannot swell.
//
// Errors are *Error with a code, a safe text and a hint.
package egress

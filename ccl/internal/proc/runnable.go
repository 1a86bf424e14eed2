package proc

// runnable finds the number in the text of /proc/loadavg: three averages, then threads that run or
// could, a slash, and all of them. It is -1 if the text is another.
func runnable(text []byte) int {
	const most = 1 << 30
	field := 0
	n, digits := 0, 0
	for _, b := range text {
		switch {
		case b == ' ':
			field++
		case field < 3:
		case field == 3 && b == '/' && digits > 0:
			return n
		case field == 3 && '0' <= b && b <= '9' && n < most/10:
			n, digits = 10*n+int(b-'0'), digits+1
		default:
			return -1
		}
	}
	return -1
}

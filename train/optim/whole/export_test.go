package whole

var Root = root
